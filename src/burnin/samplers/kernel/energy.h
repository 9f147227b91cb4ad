// The energy of a multi-layer perceptron and its gradient, for a tile of positions.
//
//     E(x) = mlp(features((x - mean) / std)) + ½ Σ precision_i (x_i - centre_i)²
//
// or, with several outputs h, -log Σ exp(h_k) in the place of mlp (a classifier's joint energy),
// with features(z) = [z, sin(z_i f_j), cos(z_i f_j)] when there are frequencies f. The forward pass keeps
// each layer's derivatives; the backward pass multiplies the gradient into them in place.
#pragma once

#include <vector>

#include "gemm.h"
#include "memory.h"

// What the caller gives. Weights are row-major (outputs, inputs); the last layer has num_outputs. Null
// `frequencies`, `mean`, `std` and `factor_precision` leave those parts out.
struct Network {
    int64_t dim;
    int64_t num_frequencies;
    int64_t depth;                 // hidden layers
    int64_t num_outputs;           // 1, or a classifier's logits
    const int64_t* widths;         // (depth)
    const float* const* weights;   // (depth + 1)
    const float* const* biases;    // (depth + 1)
    const float* frequencies;      // (num_frequencies)
    const float* mean;             // (dim)
    const float* std;              // (dim)
    const float* factor_precision; // (dim)
    const float* factor_centre;    // (dim)
    int32_t activation;
    float slope;
};

// A network packed for the products of both passes, with copies of all it needs; read by all threads.
class PackedNetwork {
  public:
    const ptrdiff_t dim, num_frequencies, num_angles, num_features, depth, num_outputs;
    const int32_t activation;
    const float slope;
    ptrdiff_t widest = 0;         // of the hidden layers
    ptrdiff_t multiply_adds = 0;  // for one position and its gradient
    std::vector<Panels> forward, backward;
    std::vector<const float*> bias;
    const float *last_weight, *last_bias;  // (outputs, whole_panels(inputs)), (outputs)
    const float *zeros, *frequencies, *mean = nullptr, *inverse_std = nullptr;
    const float *precision = nullptr, *centre = nullptr;

    explicit PackedNetwork(const Network& net)
        : dim(net.dim), num_frequencies(net.num_frequencies), num_angles(net.dim * net.num_frequencies),
          num_features(net.dim + 2 * num_angles), depth(net.depth),
          num_outputs(net.num_outputs), activation(net.activation), slope(net.slope), memory_(size(net)) {
        ptrdiff_t inputs = num_features;
        for (ptrdiff_t l = 0; l < depth; ++l) {
            const ptrdiff_t outputs = net.widths[l];
            float* to = memory_.take(Panels::size(inputs, outputs));
            forward.emplace_back(inputs, outputs, net.weights[l], 1, inputs, to);
            to = memory_.take(Panels::size(outputs, inputs));
            backward.emplace_back(outputs, inputs, net.weights[l], inputs, 1, to);
            bias.push_back(padded(net.biases[l], outputs));
            multiply_adds += 2 * inputs * outputs;
            widest = std::max(widest, outputs);
            inputs = outputs;
        }
        float* rows = memory_.take_zeros(num_outputs * whole_panels(inputs));
        for (ptrdiff_t k = 0; k < num_outputs; ++k)
            std::copy(net.weights[depth] + k * inputs, net.weights[depth] + (k + 1) * inputs,
                      rows + k * whole_panels(inputs));
        last_weight = rows;
        last_bias = padded(net.biases[depth], num_outputs);
        multiply_adds += 2 * inputs * num_outputs;
        zeros = memory_.take_zeros(whole_panels(std::max(widest, num_features)));
        frequencies = padded(net.frequencies, num_frequencies);
        if (net.std) {
            mean = padded(net.mean, dim);
            float* inverse = memory_.take_zeros(whole_panels(dim));
            for (ptrdiff_t i = 0; i < dim; ++i) inverse[i] = 1.0f / net.std[i];
            inverse_std = inverse;
        }
        if (net.factor_precision) {
            precision = padded(net.factor_precision, dim);
            centre = padded(net.factor_centre, dim);
        }
    }

    // True when the network reads the positions as they are.
    bool plain() const { return !inverse_std && num_angles == 0; }

    ptrdiff_t width(ptrdiff_t layer) const { return forward[size_t(layer)].n; }

  private:
    Floats memory_;

    static ptrdiff_t size(const Network& net) {
        ptrdiff_t inputs = net.dim * (1 + 2 * net.num_frequencies), widest = inputs, total = 0;
        for (ptrdiff_t l = 0; l < net.depth; ++l) {
            const ptrdiff_t outputs = net.widths[l];
            total += Panels::size(inputs, outputs) + Panels::size(outputs, inputs) + whole_panels(outputs);
            inputs = outputs;
            widest = std::max(widest, inputs);
        }
        total += whole_panels(widest) + whole_panels(net.num_frequencies) + 4 * whole_panels(net.dim);
        total += net.num_outputs * whole_panels(inputs) + whole_panels(net.num_outputs);
        return total + (3 * net.depth + 8) * Floats::LINE;
    }

    const float* padded(const float* from, ptrdiff_t n) {
        float* to = memory_.take_zeros(whole_panels(n));
        std::copy(from, from + n, to);
        return to;
    }
};

// One thread's tile: positions in, energies and gradients out. With `keep` the hidden layers of the last
// forward pass stay, for the gradients of the weights.
class Tile {
  public:
    const PackedNetwork& net;
    const ptrdiff_t stride;  // of the rows of `position` and `gradient`
    float *position, *energy, *gradient;

    explicit Tile(const PackedNetwork& net, ptrdiff_t rows, bool keep = false)
        : net(net), stride(row_stride(net.dim)), keep_(keep), hidden_stride_(row_stride(net.widest)),
          feature_stride_(row_stride(net.num_features)),
          memory_(rows * floats_per_row(net, keep) + 3 * angles(net) + (2 * net.depth + 10) * Floats::LINE) {
        position = memory_.take_zeros(rows * stride);
        gradient = memory_.take_zeros(rows * stride);
        energy = memory_.take(rows);
        energy_lanes_ = memory_.take(rows * VW);
        scratch_ = memory_.take(rows * hidden_stride_);
        float* other = keep ? nullptr : memory_.take(rows * hidden_stride_);
        for (ptrdiff_t l = 0; l < net.depth; ++l)
            hidden_.push_back(keep ? memory_.take(rows * hidden_stride_) : l % 2 ? other : scratch_);
        for (ptrdiff_t l = 0; l < net.depth; ++l)
            derivative_.push_back(memory_.take(rows * row_stride(net.width(l))));
        if (!net.plain()) {
            feature_ = memory_.take(rows * feature_stride_);
            feature_gradient_ = memory_.take(rows * feature_stride_);
        }
        for (float*& a : angle_) a = memory_.take_zeros(angles(net));
        logits_.resize(size_t(net.num_outputs));
    }

    static ptrdiff_t floats_per_row(const PackedNetwork& net, bool keep) {
        const ptrdiff_t hidden = keep ? net.depth + 1 : 2;
        ptrdiff_t total = 2 * row_stride(net.dim) + 1 + VW + hidden * row_stride(net.widest);
        for (ptrdiff_t l = 0; l < net.depth; ++l) total += row_stride(net.width(l));
        if (!net.plain()) total += 2 * row_stride(net.num_features);
        return total;
    }

    // Energies and gradients at the first `rows` positions.
    void evaluate(ptrdiff_t rows) {
        pass_forward(rows);
        pass_back(rows);
        multiply(rows, derivative_[0], derivative_stride(0), net.backward[0], net.zeros, of_input(),
                 input_stride(), of_input(), input_stride(), false, nothing);
        if (!net.plain()) gradient_of_features(rows);
        add_factor(rows);
    }

    // Energies alone, at the first `rows` positions.
    void energies(ptrdiff_t rows) {
        pass_forward(rows);
        add_factor(rows);
    }

    // Gradients of Σ outer_r E(x_r) with respect to the weights, after `energies` of a tile that keeps.
    void weight_gradients(ptrdiff_t rows, const float* outer, float* const* weights, float* const* biases) {
        const ptrdiff_t last = net.depth - 1, widest = std::max(net.widest, net.num_features);
        Floats memory(rows * (row_stride(net.widest) + whole_panels(widest)) +
                      net.widest * row_stride(widest) + 3 * Floats::LINE);
        float* turned = memory.take(rows * row_stride(net.widest));
        float* packed = memory.take(rows * whole_panels(widest));
        float* product = memory.take(net.widest * row_stride(widest));
        weighted_sum(rows, outer, hidden_[last], hidden_stride_, net.width(last), weights[net.depth]);
        double total_outer = 0.0;
        for (ptrdiff_t r = 0; r < rows; ++r) {
            total_outer += outer[r];
            float* d = derivative_[last] + r * derivative_stride(last);
            for (ptrdiff_t j = 0; j < whole_panels(net.width(last)); j += VW)
                store(d + j, load(d + j) * outer[r]);
        }
        biases[net.depth][0] = float(total_outer);
        pass_back(rows);
        for (ptrdiff_t l = 0; l < net.depth; ++l) {
            const ptrdiff_t outputs = net.width(l), inputs = net.forward[l].k;
            const float* delta = derivative_[l];
            for (ptrdiff_t j = 0; j < outputs; ++j) {
                double total = 0.0;
                for (ptrdiff_t r = 0; r < rows; ++r) {
                    turned[j * rows + r] = delta[r * derivative_stride(l) + j];
                    total += turned[j * rows + r];
                }
                biases[l][j] = float(total);
            }
            const float* input = l > 0 ? hidden_[l - 1] : net.plain() ? position : feature_;
            const ptrdiff_t from = l > 0 ? hidden_stride_ : input_stride(), to = row_stride(inputs);
            const Panels panels(rows, inputs, input, from, 1, packed);
            multiply(outputs, turned, rows, panels, net.zeros, product, to, product, to, false, nothing);
            for (ptrdiff_t j = 0; j < outputs; ++j)
                std::copy(product + j * to, product + j * to + inputs, weights[l] + j * inputs);
        }
    }

  private:
    const bool keep_;
    ptrdiff_t hidden_stride_, feature_stride_;
    Floats memory_;
    float *scratch_, *energy_lanes_, *feature_ = nullptr, *feature_gradient_ = nullptr, *angle_[3];
    std::vector<float*> hidden_, derivative_;
    std::vector<float> logits_;

    static void nothing(ptrdiff_t, ptrdiff_t, ptrdiff_t) {}

    static ptrdiff_t angles(const PackedNetwork& net) { return whole_panels(net.num_angles) + NR; }

    ptrdiff_t derivative_stride(ptrdiff_t layer) const { return row_stride(net.width(layer)); }

    ptrdiff_t input_stride() const { return net.plain() ? stride : feature_stride_; }

    float* of_input() const { return net.plain() ? gradient : feature_gradient_; }

    // Energies without the factor; the last layer's derivatives are multiplied by the output's weights.
    void pass_forward(ptrdiff_t rows) {
        const float* input = net.plain() ? position : make_features(rows);
        switch (net.activation) {
            case SILU: forward<SILU>(rows, input); break;
            case GELU: forward<GELU>(rows, input); break;
            case LEAKY: forward<LEAKY>(rows, input); break;
            case SOFTPLUS: forward<SOFTPLUS>(rows, input); break;
            default: forward<TANH>(rows, input);
        }
    }

    // Each layer's derivatives become the gradient with respect to what goes into its activation.
    void pass_back(ptrdiff_t rows) {
        for (ptrdiff_t l = net.depth - 1; l > 0; --l)
            multiply(rows, derivative_[l], derivative_stride(l), net.backward[l], net.zeros, scratch_,
                     hidden_stride_, derivative_[l - 1], derivative_stride(l - 1), true, nothing);
    }

    // out = Σ_r outer_r a_r over the rows of a.
    static void weighted_sum(ptrdiff_t rows, const float* outer, const float* a, ptrdiff_t a_stride,
                             ptrdiff_t n, float* out) {
        std::fill(out, out + n, 0.0f);
        for (ptrdiff_t r = 0; r < rows; ++r)
            for (ptrdiff_t j = 0; j < n; ++j) out[j] += outer[r] * a[r * a_stride + j];
    }

    const float* make_features(ptrdiff_t rows) {
        const ptrdiff_t dim = net.dim, num_angles = net.num_angles, num_frequencies = net.num_frequencies;
        auto [angle, sine, cosine] = angle_;
        for (ptrdiff_t r = 0; r < rows; ++r) {
            const float* x = position + r * stride;
            float* z = feature_ + r * feature_stride_;
            if (net.mean)
                for (ptrdiff_t i = 0; i < dim; ++i) z[i] = (x[i] - net.mean[i]) * net.inverse_std[i];
            else
                std::copy(x, x + dim, z);
            if (num_angles == 0) continue;
            for (ptrdiff_t i = 0; i < dim; ++i)
                for (ptrdiff_t j = 0; j < num_frequencies; ++j)
                    angle[i * num_frequencies + j] = z[i] * net.frequencies[j];
            sincos(num_angles, angle, sine, cosine);
            std::copy(sine, sine + num_angles, z + dim);
            std::copy(cosine, cosine + num_angles, z + dim + num_angles);
        }
        return feature_;
    }

    template <Activation activation>
    void forward(ptrdiff_t rows, const float* input) {
        ptrdiff_t from_stride = input_stride();
        const float slope = net.slope;
        std::fill(energy_lanes_, energy_lanes_ + rows * VW, 0.0f);
        for (ptrdiff_t l = 0; l < net.depth; ++l) {
            float *const h = hidden_[l], *const d = derivative_[l];
            const ptrdiff_t h_stride = hidden_stride_, d_stride = derivative_stride(l);
            auto activate_and_go_on = [=](ptrdiff_t row, ptrdiff_t count, ptrdiff_t column) {
                for (ptrdiff_t r = row; r < row + count; ++r)
                    for (ptrdiff_t j = column; j < column + NR; j += VW) {
                        Vec value, derivative;
                        activate<activation>(load(h + r * h_stride + j), slope, value, derivative);
                        store(h + r * h_stride + j, value);
                        store(d + r * d_stride + j, derivative);
                    }
            };
            // The last hidden layer meets the output's weights at once: the values in the energy, the
            // derivatives in the first gradient of the backward pass.
            auto activate_and_sum = [=, this](ptrdiff_t row, ptrdiff_t count, ptrdiff_t column) {
                for (ptrdiff_t r = row; r < row + count; ++r) {
                    Vec total = load(energy_lanes_ + r * VW);
                    for (ptrdiff_t j = column; j < column + NR; j += VW) {
                        const Vec weight = load(net.last_weight + j);
                        Vec value, derivative;
                        activate<activation>(load(h + r * h_stride + j), slope, value, derivative);
                        total += value * weight;
                        if (keep_) store(h + r * h_stride + j, value);
                        store(d + r * d_stride + j, derivative * weight);
                    }
                    store(energy_lanes_ + r * VW, total);
                }
            };
            auto product = [&](auto finish) {
                multiply(rows, input, from_stride, net.forward[l], net.bias[l], h, h_stride, h, h_stride,
                         false, finish);
            };
            if (l + 1 < net.depth || net.num_outputs > 1)
                product(activate_and_go_on);
            else
                product(activate_and_sum);
            input = h;
            from_stride = h_stride;
        }
        if (net.num_outputs > 1) return join_logits(rows);
        for (ptrdiff_t r = 0; r < rows; ++r) energy[r] = sum(load(energy_lanes_ + r * VW)) + net.last_bias[0];
    }

    // -log Σ exp(h_k) of the logits, and the last layer's derivatives times its gradient, -Σ softmax_k w_k.
    void join_logits(ptrdiff_t rows) {
        const ptrdiff_t last = net.depth - 1, size = whole_panels(net.width(last)), count = net.num_outputs;
        for (ptrdiff_t r = 0; r < rows; ++r) {
            const float* h = hidden_[last] + r * hidden_stride_;
            float* d = derivative_[last] + r * derivative_stride(last);
            for (ptrdiff_t k = 0; k < count; ++k) {
                Vec total = {};
                for (ptrdiff_t j = 0; j < size; j += VW)
                    total += load(h + j) * load(net.last_weight + k * size + j);
                logits_[size_t(k)] = sum(total) + net.last_bias[k];
            }
            const float largest = *std::max_element(logits_.begin(), logits_.end());
            float total = 0.0f;  // NaN when a logit is no number or infinite, and so is the energy
            for (float& logit : logits_) total += logit = std::exp(logit - largest);
            energy[r] = -(largest + std::log(total));
            for (ptrdiff_t j = 0; j < size; j += VW) {
                Vec pulled = {};
                for (ptrdiff_t k = 0; k < count; ++k)
                    pulled += load(net.last_weight + k * size + j) * (logits_[size_t(k)] / -total);
                store(d + j, load(d + j) * pulled);
            }
        }
    }

    void gradient_of_features(ptrdiff_t rows) {
        const ptrdiff_t dim = net.dim, num_angles = net.num_angles, num_frequencies = net.num_frequencies;
        const float* frequency = net.frequencies;
        for (ptrdiff_t r = 0; r < rows; ++r) {
            const float* sine = feature_ + r * feature_stride_ + dim;
            const float* cosine = sine + num_angles;
            const float* of_input = feature_gradient_ + r * feature_stride_;
            const float* of_sine = of_input + dim;
            const float* of_cosine = of_sine + num_angles;
            float* g = gradient + r * stride;
            for (ptrdiff_t i = 0; i < dim; ++i) {
                float total = of_input[i];
                for (ptrdiff_t j = 0; j < num_frequencies; ++j) {
                    const ptrdiff_t ij = i * num_frequencies + j;
                    total += frequency[j] * (cosine[ij] * of_sine[ij] - sine[ij] * of_cosine[ij]);
                }
                g[i] = net.inverse_std ? total * net.inverse_std[i] : total;
            }
        }
    }

    // The Gaussian factor, and NaN for a position that is not finite: an activation that saturates
    // would make a finite energy of it. The rows' padding is 0, so whole vectors may be read.
    void add_factor(ptrdiff_t rows) {
        for (ptrdiff_t r = 0; r < rows; ++r) {
            const float* x = position + r * stride;
            float* g = gradient + r * stride;
            Vec total = {};
            for (ptrdiff_t i = 0; i < net.dim; i += VW) {
                const Vec at = load(x + i);
                total += at - at;
                if (net.precision) {
                    const Vec offset = at - load(net.centre + i), slope = load(net.precision + i) * offset;
                    store(g + i, load(g + i) + slope);
                    total += 0.5f * slope * offset;
                }
            }
            energy[r] += sum(total);
        }
    }
};
