// Memory for weights and activations, taken from the system in one piece.
#pragma once

#if defined(__linux__)
#include <sys/mman.h>
#endif

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>

// Memory aligned to cache lines.
struct Floats {
    struct Free {
        void operator()(float* p) const { std::free(p); }
    };
    std::unique_ptr<float[], Free> data;
    ptrdiff_t used = 0;

    explicit Floats(ptrdiff_t size) {
        const size_t needed = size_t(size) * sizeof(float), unit = needed < HUGE_PAGE ? 64 : HUGE_PAGE;
        const size_t bytes = (needed + unit - 1) / unit * unit;
        data.reset(static_cast<float*>(std::aligned_alloc(unit, std::max(bytes, unit))));
        if (!data) throw std::bad_alloc();
#if defined(__linux__)
        if (unit == HUGE_PAGE) madvise(data.get(), bytes, MADV_HUGEPAGE);  // a wish: no matter if refused
#endif
    }

    static constexpr size_t HUGE_PAGE = 2 << 20;  // large weights in small pages miss the address cache

    static constexpr ptrdiff_t LINE = 16;  // what one piece may need beyond its size

    float* take(ptrdiff_t size) {
        float* taken = data.get() + used;
        used += (size + LINE - 1) / LINE * LINE;
        return taken;
    }

    // For what has padding: vectors read it, though its values are never used.
    float* take_zeros(ptrdiff_t size) {
        float* taken = take(size);
        std::fill(taken, taken + size, 0.0f);
        return taken;
    }
};
