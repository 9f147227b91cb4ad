// Products of a tile of rows with weights that were packed beforehand.
//
// The weights lie in panels of NR columns, [n/NR][k][NR], with zeros in the columns that round n up to
// whole panels. A register kernel makes R rows of one panel at a time, with R·NR/VW accumulators: as
// many as the registers hold, which is what hides the latency of the multiply-adds. The k of a product
// is cut in blocks, so that a block of a panel stays in the first-level cache while all rows of the tile
// pass over it.
//
// Each element is a sum in the order of k, whatever R is, so a row's result does not depend on how the
// rows are cut into tiles.
#pragma once

#include <algorithm>
#include <utility>

#include "vecmath.h"

#if defined(__AVX512F__)
constexpr int MR = 12;
#elif defined(__aarch64__)
constexpr int MR = 8;
#else
constexpr int MR = 6;
#endif

constexpr int NR = 2 * VW;
constexpr ptrdiff_t K_BLOCK = 400;  // K_BLOCK·NR floats are 25 KB with AVX2: most of a first-level cache
constexpr ptrdiff_t FAR_WEIGHTS = 256 * 1024;  // floats: 1 MB, beyond a second-level cache

static inline ptrdiff_t whole_panels(ptrdiff_t n) { return (n + NR - 1) / NR * NR; }

// Floats from one row of a matrix of n columns to the next, with room for whole panels. Rows a multiple
// of 1 KB apart would crowd into few sets of the cache.
static inline ptrdiff_t row_stride(ptrdiff_t n) {
    const ptrdiff_t stride = whole_panels(n);
    return stride % 256 == 0 ? stride + NR : stride;
}

struct Panels {
    ptrdiff_t k, n;
    const float* data;

    static ptrdiff_t size(ptrdiff_t k, ptrdiff_t n) { return k * whole_panels(n); }

    // Packs the k x n matrix whose element (i, j) is at from[i·row + j·column].
    Panels(ptrdiff_t k, ptrdiff_t n, const float* from, ptrdiff_t row, ptrdiff_t column, float* to)
        : k(k), n(n), data(to) {
        for (ptrdiff_t j = 0; j < n; j += NR, to += k * NR) {
            const ptrdiff_t width = std::min<ptrdiff_t>(NR, n - j);
            if (width < NR) std::fill(to, to + k * NR, 0.0f);
            constexpr ptrdiff_t block = 16;  // a transposing read uses its cache lines before it loses them
            for (ptrdiff_t first = 0; first < k; first += block) {
                const ptrdiff_t end = std::min(k, first + block);
                if (column == 1 && width == NR)
                    for (ptrdiff_t i = first; i < end; ++i)
                        for (int c = 0; c < NR; c += VW) store(to + i * NR + c, load(from + i * row + j + c));
                else
                    for (ptrdiff_t c = 0; c < width; ++c)
                        for (ptrdiff_t i = first; i < end; ++i)
                            to[i * NR + c] = from[i * row + (j + c) * column];
            }
        }
    }
};

// The sums start from `start` (a bias, zeros or an earlier block's sums). With `product` the result is
// multiplied into what `out` holds.
struct KernelArguments {
    ptrdiff_t k;
    const float* a;
    ptrdiff_t a_stride;
    const float* panel;
    const float* start;
    ptrdiff_t start_stride;
    float* out;
    ptrdiff_t out_stride;
    bool product;
};

template <int R>
static void kernel(const KernelArguments& arguments) {
    Vec sums[R][2];
    const ptrdiff_t stride = arguments.a_stride, k = arguments.k;
    const float* a = arguments.a;
    const float* b = arguments.panel;
    const float* start = arguments.start;
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
        sums[r][0] = load(start + r * arguments.start_stride);
        sums[r][1] = load(start + r * arguments.start_stride + VW);
    }
#pragma GCC unroll 2
    for (ptrdiff_t i = 0; i < k; ++i) {
        const Vec b0 = load(b + i * NR), b1 = load(b + i * NR + VW);
#pragma GCC unroll 16
        for (int r = 0; r < R; ++r) {
            const Vec x = splat(a[r * stride + i]);
            sums[r][0] += x * b0;
            sums[r][1] += x * b1;
        }
    }
    float* out = arguments.out;
    if (arguments.product) {
#pragma GCC unroll 16
        for (int r = 0; r < R; ++r) {
            sums[r][0] *= load(out + r * arguments.out_stride);
            sums[r][1] *= load(out + r * arguments.out_stride + VW);
        }
    }
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
        store(out + r * arguments.out_stride, sums[r][0]);
        store(out + r * arguments.out_stride + VW, sums[r][1]);
    }
}

using Kernel = void (*)(const KernelArguments&);

template <int... R>
static inline Kernel kernel_of(int rows, std::integer_sequence<int, R...>) {
    static constexpr Kernel table[] = {kernel<R + 1>...};
    return table[rows - 1];
}

static inline Kernel kernel_of(int rows) { return kernel_of(rows, std::make_integer_sequence<int, MR>()); }

// out = a · weights + start for `rows` rows, or out *= that with `product`. `partial` keeps the sums of
// unfinished blocks, and may be `out` itself without `product`. finish(row, count, column) is called for
// each piece of count x NR that is complete, while it is in the first-level cache.
template <class Finish>
static void multiply(ptrdiff_t rows, const float* a, ptrdiff_t a_stride, const Panels& weights,
                     const float* start, float* partial, ptrdiff_t partial_stride, float* out,
                     ptrdiff_t out_stride, bool product, Finish finish) {
    // Groups of nearly equal size: a small remainder would leave too few accumulators to hide latency.
    const ptrdiff_t groups = (rows + MR - 1) / MR;
    const int small = int(rows / groups);
    const ptrdiff_t num_large = rows % groups;
    const Kernel kernels[2] = {kernel_of(small), kernel_of(num_large ? small + 1 : small)};
    const bool far = Panels::size(weights.k, weights.n) > FAR_WEIGHTS;
    const ptrdiff_t num_blocks = std::max<ptrdiff_t>(1, (weights.k + K_BLOCK - 1) / K_BLOCK);
    for (ptrdiff_t block = 0; block < num_blocks; ++block) {
        const ptrdiff_t first = block * weights.k / num_blocks, end = (block + 1) * weights.k / num_blocks;
        const bool last = block + 1 == num_blocks;
        for (ptrdiff_t column = 0; column < weights.n; column += NR) {
            const float* panel = weights.data + column * weights.k + first * NR;
            // The next panel comes into the second-level cache in equal shares while this one is used.
            const bool ahead = far && column + NR < weights.n;
            const float* next = ahead ? panel + weights.k * NR : panel;
            const ptrdiff_t share = ahead ? (end - first) * NR / groups : 0;
            ptrdiff_t row = 0;
            for (ptrdiff_t group = 0; group < groups; ++group) {
                const int large = group < num_large;
                for (ptrdiff_t i = 0; i < share; i += 16) __builtin_prefetch(next + i, 0, 2);
                next += share;
                float* sums = partial + row * partial_stride + column;
                kernels[large]({end - first, a + row * a_stride + first, a_stride, panel,
                                block == 0 ? start + column : sums, block == 0 ? 0 : partial_stride,
                                last ? out + row * out_stride + column : sums,
                                last ? out_stride : partial_stride, last && product});
                if (last) finish(row, small + large, column);
                row += small + large;
            }
        }
    }
}
