// The steps of Langevin, MALA and HMC for a tile of chains, and what concerns all chains between steps.
#pragma once

#include <limits>

#include "energy.h"

enum Sampler : int32_t { LANGEVIN, MALA, HMC, NUM_SAMPLERS };

// n = num_chains, k = num_steps. Null `scale` is 1; null `step_sizes` leaves step_size to the adaptation;
// null `gain` adapts nothing; null `reweight` weights nothing.
struct Problem {
    const Network* network;       // packed for this call, unless `packed` is given
    const PackedNetwork* packed;  // of burnin_pack, for calls that follow each other
    int32_t sampler;
    int32_t num_threads;
    int64_t num_chains;
    int64_t num_steps;
    int64_t num_leapfrog;
    const float* scale;  // (dim)
    // The state, changed in place.
    float* position;    // (n, dim)
    float* energy;      // (n)
    float* gradient;    // (n, dim)
    uint8_t* alive;     // (n)
    float* log_weight;  // (n), read with `reweight` only
    double step_size;
    // What drives the steps.
    const float* normal;        // (k, n, dim), with normal_stride floats from one step to the next
    const float* spare;         // (k, n + 1), likewise normal, for acceptance and resampling
    int64_t normal_stride;
    int64_t spare_stride;
    const double* temperature;  // (k)
    const double* step_sizes;   // (k)
    const double* gain;         // (k), 0 for no adaptation in that step
    double target;              // acceptance that the adaptation holds
    const double* reweight;     // (k), what a chain's energy adds to its log weight before the step
    const double* threshold;    // (k), resamples when fewer chains are effective
    // Results.
    double norm_sum;        // over steps, of the mean gradient norm of the chains that have one
    double acceptance_sum;  // over steps, of the mean acceptance
    int64_t non_finite;     // proposals that left the finite numbers
    float* acceptance;      // (n), of the last step
    float* gradient_norm;   // (n), after the last step
};

static inline float square_sum(const float* x, ptrdiff_t n) {
    Vec lanes[2] = {};
    ptrdiff_t i = 0;
    for (; i + NR <= n; i += NR) {
        const Vec a = load(x + i), b = load(x + i + VW);
        lanes[0] += a * a;
        lanes[1] += b * b;
    }
    float total = sum(lanes[0] + lanes[1]);
    for (; i < n; ++i) total += x[i] * x[i];
    return total;
}

// A thread's own memory.
struct Worker {
    Tile tile;
    std::vector<float> drift, noise, momentum, kinetic;
    int64_t non_finite = 0;

    Worker(const PackedNetwork& net, ptrdiff_t rows, bool hmc)
        : tile(net, rows), drift(size_t(net.dim)), noise(size_t(net.dim)),
          momentum(hmc ? size_t(rows * net.dim) : 0), kinetic(hmc ? size_t(rows) : 0) {}
};

class Chain {
  public:
    Chain(Problem& problem, const PackedNetwork& net, bool coupled)
        : p_(problem), dim_(net.dim), n_(problem.num_chains), scale_(size_t(dim_), 1.0f),
          info_steps_(coupled ? 1 : problem.num_steps), acceptance_(size_t(info_steps_ * n_)),
          norm_(size_t(info_steps_ * n_)) {
        if (p_.scale) std::copy(p_.scale, p_.scale + dim_, scale_.begin());
        if (p_.reweight) {
            cumulative_.resize(size_t(n_));
            chosen_.resize(size_t(n_));
            gathered_.resize(size_t(n_ * dim_));
            gathered_alive_.resize(size_t(n_));
        }
        p_.norm_sum = p_.acceptance_sum = 0.0;
        p_.non_finite = 0;
    }

    // Takes the chains first..first + rows through one step.
    void step(Worker& worker, ptrdiff_t step, ptrdiff_t first, ptrdiff_t rows) {
        const double size = p_.step_sizes ? p_.step_sizes[step] : p_.step_size;
        if (p_.sampler == HMC)
            hmc_step(worker, step, size, first, rows);
        else
            langevin_step(worker, step, size, first, rows);
    }

    // What concerns all chains before a step: weights, and resampling by them.
    void before_step(ptrdiff_t step) {
        if (!p_.reweight || p_.reweight[step] == 0.0 || !any_alive()) return;
        double highest = -std::numeric_limits<double>::infinity();
        for (ptrdiff_t i = 0; i < n_; ++i) {
            p_.log_weight[i] = p_.alive[i] ? float(p_.log_weight[i] + p_.reweight[step] * p_.energy[i])
                                           : -std::numeric_limits<float>::infinity();
            highest = std::max(highest, double(p_.log_weight[i]));
        }
        double total = 0.0, squares = 0.0;
        for (ptrdiff_t i = 0; i < n_; ++i) {
            const double weight = std::exp(p_.log_weight[i] - highest);
            total += weight;
            squares += weight * weight;
            cumulative_[size_t(i)] = total;
        }
        if (total * total / squares >= p_.threshold[step]) return;
        // Systematic resampling: the points ascend, so one walk along the sums finds all.
        for (ptrdiff_t i = 0, j = 0; i < n_; ++i) {
            const double point = (double(i) + uniform(step, n_)) / double(n_) * total;
            while (j < n_ - 1 && cumulative_[size_t(j)] < point) ++j;
            chosen_[size_t(i)] = j;
        }
        gather(p_.position, dim_, gathered_);
        gather(p_.gradient, dim_, gathered_);
        gather(p_.energy, 1, gathered_);
        gather(p_.alive, 1, gathered_alive_);
        std::fill(p_.log_weight, p_.log_weight + n_, 0.0f);
    }

    // What concerns all chains after a step: sums, and the adapted step size.
    void after_step(ptrdiff_t step) {
        const float *acceptance = info(acceptance_, step), *norm = info(norm_, step);
        double norm_total = 0.0, total = 0.0, living_total = 0.0;
        ptrdiff_t num_norms = 0, num_living = 0;
        for (ptrdiff_t i = 0; i < n_; ++i) {
            total += acceptance[i];
            if (p_.alive[i]) living_total += acceptance[i], ++num_living;
            if (!std::isnan(norm[i])) norm_total += norm[i], ++num_norms;
        }
        p_.norm_sum += norm_total / double(num_norms);  // 0 / 0, NaN, when no chain has one
        p_.acceptance_sum += total / double(n_);
        if (p_.step_sizes) p_.step_size = p_.step_sizes[step];
        if (p_.gain && p_.gain[step] != 0.0 && num_living)
            p_.step_size *= std::exp(p_.gain[step] * (living_total / double(num_living) - p_.target));
        if (step + 1 < p_.num_steps) return;
        std::copy(acceptance, acceptance + n_, p_.acceptance);
        std::copy(norm, norm + n_, p_.gradient_norm);
    }

  private:
    Problem& p_;
    const ptrdiff_t dim_, n_;
    std::vector<float> scale_;
    // Per chain and step, so that the sums over chains are taken in one order whatever the threads;
    // coupled steps are summed as they come and need one step's room.
    const ptrdiff_t info_steps_;
    std::vector<float> acceptance_, norm_;
    std::vector<double> cumulative_;
    std::vector<ptrdiff_t> chosen_;
    std::vector<float> gathered_;
    std::vector<uint8_t> gathered_alive_;

    float* info(std::vector<float>& of, ptrdiff_t step) {
        return of.data() + (info_steps_ == 1 ? 0 : step * n_);
    }

    bool any_alive() const {
        return std::any_of(p_.alive, p_.alive + n_, [](uint8_t a) { return a != 0; });
    }

    template <class T>
    void gather(T* values, ptrdiff_t width, std::vector<T>& space) {
        for (ptrdiff_t i = 0; i < n_; ++i)
            std::copy_n(values + chosen_[size_t(i)] * width, width, space.data() + i * width);
        std::copy_n(space.data(), n_ * width, values);
    }

    // Moves chain i to the tile's row.
    void take(const Tile& tile, ptrdiff_t row, ptrdiff_t i) {
        std::copy_n(tile.position + row * tile.stride, dim_, p_.position + i * dim_);
        std::copy_n(tile.gradient + row * tile.stride, dim_, p_.gradient + i * dim_);
        p_.energy[i] = tile.energy[row];
    }

    void langevin_step(Worker& worker, ptrdiff_t step, double size, ptrdiff_t first, ptrdiff_t rows) {
        Tile& tile = worker.tile;
        const double temperature = p_.temperature[step];
        float *drift = worker.drift.data(), *noise = worker.noise.data();
        for (ptrdiff_t j = 0; j < dim_; ++j) {
            drift[j] = float(size) * scale_[size_t(j)];
            noise[j] = std::sqrt(float(2.0 * temperature) * drift[j]);
        }
        const float* normal = p_.normal + step * p_.normal_stride + first * dim_;
        for (ptrdiff_t r = 0; r < rows; ++r) {
            const float *x = p_.position + (first + r) * dim_, *g = p_.gradient + (first + r) * dim_;
            const float* z = normal + r * dim_;
            float* __restrict to = tile.position + r * tile.stride;
            for (ptrdiff_t j = 0; j < dim_; ++j) to[j] = x[j] - drift[j] * g[j] + noise[j] * z[j];
        }
        tile.evaluate(rows);
        for (ptrdiff_t r = 0; r < rows; ++r) {
            const ptrdiff_t i = first + r;
            const float new_norm = std::sqrt(square_sum(tile.gradient + r * tile.stride, dim_));
            if (p_.sampler == LANGEVIN) {
                const bool finite = std::isfinite(tile.energy[r] + new_norm);
                const bool alive = p_.alive[i] && finite;
                worker.non_finite += p_.alive[i] && !finite;
                p_.alive[i] = alive;
                settle(worker, step, r, i, alive, alive ? 1.0f : 0.0f, new_norm);
            } else {
                const float* x = p_.position + i * dim_;
                const float log_backward = -backward_exponent(tile, r, x, drift, noise);
                const float log_forward = -0.5f * square_sum(normal + r * dim_, dim_);
                const float change = float((tile.energy[r] - p_.energy[i]) / temperature);
                metropolis(worker, step, r, i, -change + log_backward - log_forward, new_norm);
            }
        }
    }

    // Σ (x - x' + step g')² / (4 T step), the noise that the move back would have needed, squared, halved.
    float backward_exponent(const Tile& tile, ptrdiff_t row, const float* x, const float* drift,
                            const float* noise) const {
        const float *to = tile.position + row * tile.stride, *g = tile.gradient + row * tile.stride;
        float lanes[VW] = {};
        ptrdiff_t j = 0;
        auto term = [&](ptrdiff_t j) {
            const float z = (x[j] - to[j] + drift[j] * g[j]) / noise[j];
            return 0.5f * z * z;
        };
        for (; j + VW <= dim_; j += VW)
            for (ptrdiff_t l = 0; l < VW; ++l) lanes[l] += term(j + l);
        float total = sum(load(lanes));
        for (; j < dim_; ++j) total += term(j);
        return total;
    }

    void hmc_step(Worker& worker, ptrdiff_t step, double size, ptrdiff_t first, ptrdiff_t rows) {
        Tile& tile = worker.tile;
        const double temperature = p_.temperature[step];
        const float half = float(0.5 * size);
        float *drift = worker.drift.data(), *spread = worker.noise.data();
        for (ptrdiff_t j = 0; j < dim_; ++j) {
            drift[j] = float(size) * scale_[size_t(j)];
            spread[j] = std::sqrt(float(temperature) / scale_[size_t(j)]);
        }
        const float* normal = p_.normal + step * p_.normal_stride + first * dim_;
        for (ptrdiff_t r = 0; r < rows; ++r) {
            float* __restrict momentum = worker.momentum.data() + r * dim_;
            for (ptrdiff_t j = 0; j < dim_; ++j) momentum[j] = normal[r * dim_ + j] * spread[j];
            worker.kinetic[size_t(r)] = kinetic(momentum);
            std::copy_n(p_.position + (first + r) * dim_, dim_, tile.position + r * tile.stride);
            std::copy_n(p_.gradient + (first + r) * dim_, dim_, tile.gradient + r * tile.stride);
        }
        for (int64_t leap = 0; leap < p_.num_leapfrog; ++leap) {
            for (ptrdiff_t r = 0; r < rows; ++r) {
                float* __restrict momentum = worker.momentum.data() + r * dim_;
                float* __restrict x = tile.position + r * tile.stride;
                const float* g = tile.gradient + r * tile.stride;
                for (ptrdiff_t j = 0; j < dim_; ++j) {
                    momentum[j] -= half * g[j];
                    x[j] += drift[j] * momentum[j];
                }
            }
            tile.evaluate(rows);
            for (ptrdiff_t r = 0; r < rows; ++r) {
                float* __restrict momentum = worker.momentum.data() + r * dim_;
                const float* g = tile.gradient + r * tile.stride;
                for (ptrdiff_t j = 0; j < dim_; ++j) momentum[j] -= half * g[j];
            }
        }
        for (ptrdiff_t r = 0; r < rows; ++r) {
            const ptrdiff_t i = first + r;
            const float new_norm = std::sqrt(square_sum(tile.gradient + r * tile.stride, dim_));
            const float change = tile.energy[r] - p_.energy[i] + kinetic(worker.momentum.data() + r * dim_) -
                                 worker.kinetic[size_t(r)];
            metropolis(worker, step, r, i, float(-change / temperature), new_norm);
        }
    }

    float kinetic(const float* momentum) const {
        float lanes[VW] = {};
        ptrdiff_t j = 0;
        for (; j + VW <= dim_; j += VW)
            for (ptrdiff_t l = 0; l < VW; ++l)
                lanes[l] += scale_[size_t(j + l)] * momentum[j + l] * momentum[j + l];
        float total = sum(load(lanes));
        for (; j < dim_; ++j) total += scale_[size_t(j)] * momentum[j] * momentum[j];
        return 0.5f * total;
    }

    // A uniform number from the i-th spare normal one.
    double uniform(ptrdiff_t step, ptrdiff_t i) const {
        return 0.5 * std::erfc(-double(p_.spare[step * p_.spare_stride + i]) * 0.70710678118654752);
    }

    // Accepts chain i's proposal in the tile's row with probability min(1, exp(log_ratio)).
    void metropolis(Worker& worker, ptrdiff_t step, ptrdiff_t row, ptrdiff_t i, float log_ratio,
                    float new_norm) {
        const bool finite =
            std::isfinite(worker.tile.energy[row]) && std::isfinite(new_norm) && std::isfinite(log_ratio);
        const float acceptance = finite ? std::exp(std::min(log_ratio, 0.0f)) : 0.0f;
        worker.non_finite += p_.alive[i] && !finite;
        const bool accept = p_.alive[i] && uniform(step, i) < acceptance;
        settle(worker, step, row, i, accept, acceptance, new_norm);
    }

    // Ends the step of chain i, which moves to the tile's row or stays.
    void settle(Worker& worker, ptrdiff_t step, ptrdiff_t row, ptrdiff_t i, bool moves, float acceptance,
                float new_norm) {
        if (moves) take(worker.tile, row, i);
        info(acceptance_, step)[i] = acceptance;
        info(norm_, step)[i] = moves ? new_norm : std::sqrt(square_sum(p_.gradient + i * dim_, dim_));
    }
};
