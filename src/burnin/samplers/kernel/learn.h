// One update of a network's weights: the contrast of data with negatives, plain or β-weighted, its
// gradient, and Adam. What the tensor operations do one by one, in one call.
#pragma once

#include <cmath>
#include <limits>

#include "energy.h"

enum Variant : int32_t { DEFAULT, NO_POSITIVE, BATCH_CORRECTED, TRUE_OBJECTIVE, NUM_VARIANTS };

// What is said of an arm's contrast: see ArmInfo and BetaInfo.
struct ArmReport {
    double d, std, grad_scale, effective, largest, positive, gap;
};

// Rows of x are the data, then the negatives of each arm. Arms with the same pool share one contrast, and
// its weight, beta and variant; pools are numbered in the order of their first arms.
struct Update {
    const PackedNetwork* packed;
    const float* x;
    int64_t num_data, num_arms;
    const int64_t* sizes;     // (num_arms)
    const int64_t* pool;      // (num_arms)
    const double* weight;     // (num_arms)
    const double* beta;       // (num_arms)
    const int32_t* variant;   // (num_arms)
    double temperature;
    double clip_norm;         // 0 for none
    // All weights, then all biases; Adam's state likewise, with one step count for each.
    float* const* parameters;
    float* const* first_moment;
    float* const* second_moment;
    float* const* steps;
    double rate, decay_first, decay_second, epsilon;
    // Results.
    double loss;
    int64_t finite;           // whether all weights are, after the update
    ArmReport* reports;       // (num_arms)
};

// The β-weighted loss of f = -E/T and its derivatives with respect to f (burnin.objectives.beta).
class Weighted {
  public:
    double loss = 0, grad_scale = 0, effective, largest = 0, positive = 0;
    std::vector<double> on_positive, on_negative;

    Weighted(const std::vector<double>& data, const std::vector<double>& chains, double beta, Variant variant)
        : on_positive(data.size()), on_negative(chains.size()) {
        const double n = double(data.size());
        double highest = -std::numeric_limits<double>::infinity(), total = 0, squares = 0;
        for (double f : chains) highest = std::max(highest, beta * f);
        for (double f : chains) total += std::exp(beta * f - highest);
        const double pooled = highest + std::log(total);
        for (size_t j = 0; j < chains.size(); ++j) {
            const double w = std::exp(beta * chains[j] - pooled);
            on_negative[j] = w;
            squares += w * w;
            largest = std::max(largest, w);
        }
        effective = 1 / squares;
        const size_t half = data.size() / 2;
        double mean = 0, softplus = 0, out_of[2] = {0, 0}, mean_of[2] = {0, 0};
        std::vector<double>& out = on_positive;  // 1 - w⁺ of each positive, until the end
        for (size_t i = 0; i < data.size(); ++i) {
            const double against = beta * data[i] - pooled, e = std::exp(-std::fabs(against));
            out[i] = against > 0 ? e / (1 + e) : 1 / (1 + e);
            positive += (against > 0 ? 1 / (1 + e) : e / (1 + e)) / n;
            softplus += (std::max(-against, 0.0) + std::log1p(e)) / n;
            mean += data[i] / n;
            out_of[i >= half] += out[i];
            mean_of[i >= half] += data[i];
        }
        grad_scale = (out_of[0] + out_of[1]) / n;
        double share = grad_scale;
        if (variant == DEFAULT) {
            loss = softplus / beta;
            for (double& o : out) o /= -n;
        } else if (variant == TRUE_OBJECTIVE) {
            const double sizes[2] = {double(half), n - double(half)};
            const double scale[2] = {out_of[1] / sizes[1], out_of[0] / sizes[0]};  // of the other half
            share = 0.5 * (scale[0] + scale[1]);
            for (int h = 0; h < 2; ++h) loss += 0.5 * scale[h] * (pooled / beta - mean_of[h] / sizes[h]);
            for (size_t i = 0; i < data.size(); ++i) {
                const int h = i >= half;
                out[i] = -0.5 * scale[h] / sizes[h];
            }
        } else {
            if (variant == NO_POSITIVE) share = 1;
            loss = share * (pooled / beta - mean);
            for (double& o : out) o = -share / n;
        }
        for (double& w : on_negative) w *= share;
    }
};

class Learner {
  public:
    explicit Learner(Update& update) : u_(update), net_(*update.packed) {}

    void run() {
        rows_ = u_.num_data;
        for (int64_t a = 0; a < u_.num_arms; ++a) rows_ += u_.sizes[a];
        Tile tile(net_, rows_, true);
        for (ptrdiff_t r = 0; r < rows_; ++r)
            std::copy(u_.x + r * net_.dim, u_.x + (r + 1) * net_.dim, tile.position + r * tile.stride);
        tile.energies(rows_);
        force_.assign(size_t(rows_), 0.0);
        u_.loss = 0;
        for (int64_t pool = 0, arm = 0; arm < u_.num_arms; ++arm)
            if (u_.pool[arm] == pool) contrast(tile.energy, pool++);
        descend(tile);
    }

  private:
    Update& u_;
    const PackedNetwork& net_;
    ptrdiff_t rows_ = 0;
    std::vector<double> force_;

    // Adds the contrast of one pool to the loss and to the forces on the energies.
    void contrast(const float* energy, int64_t pool) {
        std::vector<double> data, chains;
        std::vector<ptrdiff_t> rows;
        int64_t leader = -1;
        ptrdiff_t first = u_.num_data;
        for (ptrdiff_t i = 0; i < first; ++i) data.push_back(energy[i]);
        for (int64_t a = 0; a < u_.num_arms; first += u_.sizes[a++]) {
            if (u_.pool[a] != pool) continue;
            if (leader < 0) leader = a;
            describe(u_.reports[a], data, energy + first, u_.sizes[a]);
            for (ptrdiff_t r = first; r < first + u_.sizes[a]; ++r) {
                rows.push_back(r);
                chains.push_back(energy[r]);
            }
        }
        const double beta = u_.beta[leader], weight = u_.weight[leader];
        if (beta == 0) {
            u_.loss += weight * (mean(data) - mean(chains));
            for (size_t i = 0; i < data.size(); ++i) force_[i] += weight / double(data.size());
            for (ptrdiff_t r : rows) force_[size_t(r)] -= weight / double(rows.size());
            return;
        }
        for (double& e : data) e /= -u_.temperature;
        for (double& e : chains) e /= -u_.temperature;
        const Weighted w(data, chains, beta, Variant(u_.variant[leader]));
        u_.loss += weight * u_.temperature * w.loss;
        for (size_t i = 0; i < data.size(); ++i) force_[i] -= weight * w.on_positive[i];
        for (size_t j = 0; j < rows.size(); ++j) force_[size_t(rows[j])] -= weight * w.on_negative[j];
        const double gap = mean(data) - mean(chains);
        for (int64_t a = 0; a < u_.num_arms; ++a)
            if (u_.pool[a] == pool) {
                ArmReport& report = u_.reports[a];
                report = {report.d, report.std, w.grad_scale, w.effective, w.largest, w.positive, gap};
            }
    }

    static double mean(const std::vector<double>& values) {
        double total = 0;
        for (double value : values) total += value;
        return total / double(values.size());
    }

    static double variance(const std::vector<double>& values) {
        const double middle = mean(values);
        double total = 0;
        for (double value : values) total += (value - middle) * (value - middle);
        return total / double(values.size());
    }

    // d, and the spread of the differences: paired where there are as many negatives as data.
    static void describe(ArmReport& report, const std::vector<double>& data, const float* energy, int64_t n) {
        std::vector<double> chains(energy, energy + n);
        report.d = mean(data) - mean(chains);
        if (chains.size() == data.size()) {
            for (size_t i = 0; i < chains.size(); ++i) chains[i] = data[i] - chains[i];
            report.std = std::sqrt(variance(chains));
        } else {
            report.std = std::sqrt(variance(data) + variance(chains));
        }
    }

    void descend(Tile& tile) {
        const std::vector<float> outer(force_.begin(), force_.end());
        std::vector<ptrdiff_t> sizes;  // of all weights, then of all biases
        ptrdiff_t inputs = net_.num_features, total = 0;
        for (ptrdiff_t l = 0; l < net_.depth; ++l) {
            sizes.push_back(inputs * net_.width(l));
            inputs = net_.width(l);
        }
        sizes.push_back(inputs);
        for (ptrdiff_t l = 0; l < net_.depth; ++l) sizes.push_back(net_.width(l));
        sizes.push_back(1);
        for (ptrdiff_t size : sizes) total += size + Floats::LINE;
        Floats memory(total);
        std::vector<float*> gradients;
        for (ptrdiff_t size : sizes) gradients.push_back(memory.take(size));
        tile.weight_gradients(rows_, outer.data(), gradients.data(), gradients.data() + net_.depth + 1);
        const float shrink = clipping(sizes, gradients);
        bool finite = true;
        for (size_t p = 0; p < sizes.size(); ++p) finite &= adam(p, sizes[p], gradients[p], shrink);
        u_.finite = finite;
    }

    // As torch.nn.utils.clip_grad_norm_ has it.
    float clipping(const std::vector<ptrdiff_t>& sizes, const std::vector<float*>& gradients) const {
        if (u_.clip_norm == 0) return 1.0f;
        double squares = 0;
        for (size_t p = 0; p < sizes.size(); ++p)
            for (ptrdiff_t i = 0; i < sizes[p]; ++i) squares += double(gradients[p][i]) * gradients[p][i];
        return float(std::min(1.0, u_.clip_norm / (std::sqrt(squares) + 1e-6)));
    }

    // One parameter's step, in the order of torch.optim.Adam; returns whether all of it is finite.
    bool adam(size_t p, ptrdiff_t size, const float* gradient, float shrink) {
        float *value = u_.parameters[p], *first = u_.first_moment[p], *second = u_.second_moment[p];
        const double step = double(*u_.steps[p] += 1.0f);
        const double left_first = 1 - std::pow(u_.decay_first, step);
        const double left_second = std::sqrt(1 - std::pow(u_.decay_second, step));
        const float b1 = float(u_.decay_first), b2 = float(u_.decay_second), eps = float(u_.epsilon);
        const float rate = float(u_.rate / left_first), root = float(1 / left_second);
        int32_t bad = 0;
        for (ptrdiff_t i = 0; i < size; ++i) {
            const float g = gradient[i] * shrink;
            first[i] += (1 - b1) * (g - first[i]);
            second[i] = b2 * second[i] + (1 - b2) * g * g;
            value[i] -= rate * first[i] / (std::sqrt(second[i]) * root + eps);
            int32_t bits;
            std::memcpy(&bits, value + i, sizeof bits);
            bad |= (bits & 0x7f800000) == 0x7f800000;  // the exponent of infinity and NaN
        }
        return bad == 0;
    }
};
