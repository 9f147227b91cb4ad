// Runs Markov chains under a network's energy, all steps in one call.
//
// Chains are cut into tiles that suit a core's own cache. When no step depends on all chains, a thread
// takes a tile through all its steps before the next one. With adaptation or resampling all threads take
// one step of their tiles, meet, and one of them does what concerns all chains.
//
// Plain C interface, no state between calls. The results do not depend on the number of threads.
#include "learn.h"
#include "steps.h"
#include "team.h"

namespace {

enum Status : int { OK = 0, BAD_ARGUMENT = 1, OUT_OF_MEMORY = 2 };

constexpr ptrdiff_t LARGEST_TILE = 128;    // rows: a block of their activations fits in a core's own cache
constexpr ptrdiff_t ROWS_PER_THREAD = 12;  // fewer make poor use of the kernels
constexpr double WORK_PER_THREAD = 1e6;    // multiply-adds that pay for starting a thread

// How n chains are cut: `count` tiles of nearly equal size, for `threads` threads.
struct Tiling {
    ptrdiff_t n, count;
    int threads;

    Tiling(const PackedNetwork& net, ptrdiff_t n, ptrdiff_t evaluations, int num_threads) : n(n) {
        const double work = double(n) * double(evaluations) * double(net.multiply_adds) / WORK_PER_THREAD;
        const ptrdiff_t useful = std::min(ptrdiff_t(std::min(work, 1e6)), n / ROWS_PER_THREAD);
        threads = int(std::clamp<ptrdiff_t>(useful, 1, num_threads));
        const ptrdiff_t rows_per_thread = (n + threads - 1) / threads;
        count = threads * ((rows_per_thread + LARGEST_TILE - 1) / LARGEST_TILE);
    }

    ptrdiff_t start(ptrdiff_t tile) const { return tile * n / count; }
    ptrdiff_t largest() const { return (n + count - 1) / count; }
};

bool valid(const Network& net) {
    if (net.dim < 1 || net.depth < 1 || net.num_outputs < 1 || net.num_frequencies < 0 || !net.widths || !net.weights || !net.biases)
        return false;
    if (net.activation < 0 || net.activation >= NUM_ACTIVATIONS) return false;
    if (net.num_frequencies && !net.frequencies) return false;
    if (!net.mean != !net.std || !net.factor_precision != !net.factor_centre) return false;
    for (int64_t l = 0; l <= net.depth; ++l) {
        if (l < net.depth && net.widths[l] < 1) return false;
        if (!net.weights[l] || !net.biases[l]) return false;
    }
    return true;
}

bool valid(const Problem& p) {
    if (!p.packed && !(p.network && valid(*p.network))) return false;
    if (p.num_chains < 1 || p.num_steps < 0 || p.num_threads < 1) return false;
    if (p.sampler < 0 || p.sampler >= NUM_SAMPLERS || (p.sampler == HMC && p.num_leapfrog < 1)) return false;
    if (!p.position || !p.energy || !p.gradient || !p.alive) return false;
    if (p.num_steps > 0 && !(p.normal && p.temperature && p.spare)) return false;
    if (p.reweight && !(p.log_weight && p.threshold)) return false;
    return p.acceptance && p.gradient_norm;
}

void run_chain(Problem& p) {
    std::unique_ptr<PackedNetwork> own;
    if (!p.packed) own = std::make_unique<PackedNetwork>(*p.network);
    const PackedNetwork& net = p.packed ? *p.packed : *own;
    const bool coupled = p.gain || p.reweight;
    Chain chain(p, net, coupled);
    const int64_t evaluations = p.num_steps * (p.sampler == HMC ? p.num_leapfrog : 1);
    const Tiling tiling(net, p.num_chains, evaluations, p.num_threads);
    std::vector<Worker> workers;
    workers.reserve(size_t(tiling.threads));
    for (int i = 0; i < tiling.threads; ++i) workers.emplace_back(net, tiling.largest(), p.sampler == HMC);
    auto step_tile = [&](Worker& worker, ptrdiff_t step, ptrdiff_t tile) {
        const ptrdiff_t first = tiling.start(tile);
        chain.step(worker, step, first, tiling.start(tile + 1) - first);
    };
    std::atomic<ptrdiff_t> next{0};
    run_team(tiling.threads, [&](int thread, Barrier& barrier) {
        Worker& worker = workers[size_t(thread)];
        if (!coupled) {
            for (ptrdiff_t tile; (tile = next.fetch_add(1)) < tiling.count;)
                for (ptrdiff_t step = 0; step < p.num_steps; ++step) step_tile(worker, step, tile);
            return;
        }
        for (ptrdiff_t step = 0; step < p.num_steps; ++step) {
            if (thread == 0) {  // the others wait at the barrier
                chain.before_step(step);
                next.store(0, std::memory_order_relaxed);
            }
            barrier.wait();
            for (ptrdiff_t tile; (tile = next.fetch_add(1)) < tiling.count;) step_tile(worker, step, tile);
            barrier.wait();
            if (thread == 0) chain.after_step(step);
        }
    });
    if (!coupled)
        for (ptrdiff_t step = 0; step < p.num_steps; ++step) chain.after_step(step);
    for (const Worker& worker : workers) p.non_finite += worker.non_finite;
}

// Several updates of one arm in one call. `chain` and `update` say what is the same for all of them; their
// states, inputs and results are taken from here.
struct Training {
    const Network* network;     // its weights change from update to update
    const Problem* chain;
    const Update* update;
    int64_t num_updates;
    const float* data;          // (updates, num_data, dim)
    float* position;            // (updates, chains, dim): starts, then ends
    const float* normal;        // (updates, steps, ...), with normal_stride floats from one update to the next
    int64_t normal_stride;
    const double* rates;        // (updates)
    // Results, (updates) each.
    double *loss, *norm, *acceptance;
    int64_t *stopped, *non_finite, *finite;
};

void fill(Tile& tile, const float* x, ptrdiff_t rows) {
    const ptrdiff_t dim = tile.net.dim;
    for (ptrdiff_t r = 0; r < rows; ++r) std::copy(x + r * dim, x + (r + 1) * dim, tile.position + r * tile.stride);
}

void evaluate(const PackedNetwork& net, const float* x, ptrdiff_t rows, float* energy, float* gradient) {
    Tile tile(net, std::min(rows, LARGEST_TILE));
    for (ptrdiff_t first = 0; first < rows; first += LARGEST_TILE) {
        const ptrdiff_t count = std::min(LARGEST_TILE, rows - first);
        fill(tile, x + first * net.dim, count);
        tile.evaluate(count);
        std::copy(tile.energy, tile.energy + count, energy + first);
        for (ptrdiff_t r = 0; r < count; ++r)
            std::copy(tile.gradient + r * tile.stride, tile.gradient + r * tile.stride + net.dim,
                      gradient + (first + r) * net.dim);
    }
}

// The u-th update: chains from their start to their end, then the weights.
void train_once(const Training& t, int64_t u) {
    const PackedNetwork net(*t.network);
    Problem chain = *t.chain;
    Update update = *t.update;
    const ptrdiff_t n = chain.num_chains, dim = net.dim, num_data = update.num_data;
    std::vector<float> energy(static_cast<size_t>(n)), log_weight(energy), acceptance(energy), norm(energy);
    std::vector<float> gradient(size_t(n * dim)), x(size_t((num_data + n) * dim));
    std::vector<uint8_t> alive(static_cast<size_t>(n));
    float* position = t.position + u * n * dim;
    evaluate(net, position, n, energy.data(), gradient.data());
    for (ptrdiff_t i = 0; i < n; ++i)
        alive[size_t(i)] =
            std::isfinite(energy[size_t(i)] + std::sqrt(square_sum(gradient.data() + i * dim, dim)));
    chain.packed = &net;
    chain.position = position;
    chain.energy = energy.data();
    chain.gradient = gradient.data();
    chain.alive = alive.data();
    chain.log_weight = log_weight.data();
    chain.acceptance = acceptance.data();
    chain.gradient_norm = norm.data();
    chain.normal = chain.spare = t.normal + u * t.normal_stride;  // without adaptation no step reads `spare`
    chain.norm_sum = chain.acceptance_sum = 0;
    chain.non_finite = 0;
    if (chain.num_steps > 0) run_chain(chain);
    std::copy(t.data + u * num_data * dim, t.data + (u + 1) * num_data * dim, x.data());
    std::copy(position, position + n * dim, x.data() + num_data * dim);
    update.packed = &net;
    update.x = x.data();
    update.rate = t.rates[u];
    update.reports += u;
    Learner(update).run();
    t.loss[u] = update.loss;
    t.finite[u] = update.finite;
    t.norm[u] = chain.norm_sum / double(std::max<int64_t>(1, chain.num_steps));
    t.acceptance[u] = chain.acceptance_sum / double(std::max<int64_t>(1, chain.num_steps));
    t.non_finite[u] = chain.non_finite;
    t.stopped[u] = n - std::count(alive.begin(), alive.end(), uint8_t(1));
}

// Runs `body`; no exception crosses the C interface.
template <class Body>
int guarded(Body body) {
    try {
        body();
        return OK;
    } catch (const std::exception&) {  // no memory, or sizes beyond what a vector can hold
        return OUT_OF_MEMORY;
    }
}

}  // namespace

extern "C" {

// A network ready for several calls, which does not follow later changes of its weights; null when
// there is no memory or the network is not valid. To be given back with burnin_unpack.
const PackedNetwork* burnin_pack(const Network* network) {
    const PackedNetwork* packed = nullptr;
    if (network && valid(*network)) guarded([&] { packed = new PackedNetwork(*network); });
    return packed;
}

void burnin_unpack(const PackedNetwork* packed) { delete packed; }

// Energies (rows) and gradients (rows, dim) at x (rows, dim).
int burnin_evaluate(const PackedNetwork* net, const float* x, int64_t rows, float* energy, float* gradient) {
    return guarded([&] { evaluate(*net, x, rows, energy, gradient); });
}

// Energies at x, with all that the gradients of the weights need; null when there is no memory. To be
// given back with burnin_forget, before the network.
Tile* burnin_learn(const PackedNetwork* net, const float* x, int64_t rows, float* energy) {
    std::unique_ptr<Tile> tile;
    const int status = guarded([&] {
        tile = std::make_unique<Tile>(*net, rows, true);
        fill(*tile, x, rows);
        tile->energies(rows);
        std::copy(tile->energy, tile->energy + rows, energy);
    });
    return status == OK ? tile.release() : nullptr;
}

// The gradients of Σ outer_r E(x_r), once for each burnin_learn: they are made in its memory.
int burnin_weight_gradients(Tile* tile, int64_t rows, const float* outer, float* const* weights,
                            float* const* biases) {
    return guarded([&] { tile->weight_gradients(rows, outer, weights, biases); });
}

void burnin_forget(Tile* tile) { delete tile; }

// One update of the weights; see Update.
int burnin_update(Update* update) {
    for (int64_t a = 0; a < update->num_arms; ++a)
        if (update->variant[a] < 0 || update->variant[a] >= NUM_VARIANTS || update->sizes[a] < 1)
            return BAD_ARGUMENT;
    return guarded([&] { Learner(*update).run(); });
}

// Several updates, one after the other; see Training. One arm of Langevin chains.
int burnin_train(const Training* training) {
    const Problem& chain = *training->chain;
    if (!valid(*training->network) || chain.sampler != LANGEVIN || chain.gain || chain.reweight)
        return BAD_ARGUMENT;
    return guarded([&] {
        for (int64_t u = 0; u < training->num_updates; ++u) train_once(*training, u);
    });
}

// Takes the chains through problem->num_steps steps.
int burnin_chain(Problem* problem) {
    if (!problem || !valid(*problem)) return BAD_ARGUMENT;
    return guarded([&] { run_chain(*problem); });
}

}
