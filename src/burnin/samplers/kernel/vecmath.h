// Vectors of floats and the functions of them that a network needs.
//
// Written with the compilers' vector extensions, so that one source serves AVX2, AVX-512, SSE and
// NEON. Every function is right to about 2 ulp where it is not said otherwise, gives NaN for NaN and
// never traps. The results of a lane do not depend on the other lanes.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#if defined(__AVX512F__)
constexpr int VW = 16;
#elif defined(__AVX__)
constexpr int VW = 8;
#else
constexpr int VW = 4;
#endif

typedef float Vec __attribute__((vector_size(VW * 4)));
typedef int32_t IntVec __attribute__((vector_size(VW * 4)));

static inline Vec load(const float* p) {
    Vec v;
    std::memcpy(&v, p, sizeof v);  // an unaligned load
    return v;
}

static inline void store(float* p, Vec v) { std::memcpy(p, &v, sizeof v); }

static inline Vec splat(float x) { return x - Vec{}; }  // x - 0 and not x + 0: the sign of -0 stays

static inline IntVec splat_int(int32_t x) { return x - IntVec{}; }

// The order of the sum is fixed, so a row's result does not depend on where in a tile it lies.
static inline float sum(Vec v) {
    float lane[VW];
    std::memcpy(lane, &v, sizeof v);
    for (int half = VW / 2; half > 0; half /= 2)
        for (int i = 0; i < half; ++i) lane[i] += lane[i + half];
    return lane[0];
}

static inline bool any(IntVec mask) {
    int32_t lane[VW], found = 0;
    std::memcpy(lane, &mask, sizeof mask);
    for (int i = 0; i < VW; ++i) found |= lane[i];
    return found != 0;
}

static inline Vec absolute(Vec x) { return (Vec)((IntVec)x & 0x7fffffff); }

static inline Vec sign_of(Vec x) { return (Vec)((IntVec)x & splat_int(INT32_MIN)); }

static inline Vec copy_sign(Vec magnitude, Vec sign) {
    return (Vec)((IntVec)magnitude | (IntVec)sign_of(sign));
}

// exp(x); infinite from 88.4 on and 0 below -87.7, without the subnormal results.
static inline Vec exp_vec(Vec x) {
    const Vec high = splat(88.72f), low = splat(-88.02f);
    x = high < x ? high : x;  // in this order a NaN passes through
    x = low > x ? low : x;
    // 1.5·2^23 rounds to a whole number n in the low bits; 127 more makes them the exponent of 2^n,
    // which the shift puts in place: n = 128 gives infinity and n = -127 gives 0, as they should.
    const Vec rounder = splat(12582912.0f + 127.0f);
    const Vec shifted = x * 1.44269504f + rounder;
    const Vec n = shifted - rounder;
    const Vec power = (Vec)((IntVec)shifted << 23);
    Vec r = x - n * 0.693359375f;  // ln 2 in two parts, the first with so few bits that n times it is exact
    r = r + n * 2.12194440e-4f;
    Vec p = r * 1.3814494e-3f + 8.3687460e-3f;
    p = p * r + 4.1668386e-2f;
    p = p * r + 1.6666520e-1f;
    p = p * r + 4.9999993e-1f;
    return ((p * r + 1.0f) * r + 1.0f) * power;
}

// log(1 + e) for 0 <= e <= 1, as 2 artanh(e / (2 + e)).
static inline Vec log1p_unit(Vec e) {
    const Vec s = e / (e + 2.0f), z = s * s;
    Vec p = z * 0.28185334f + 0.27959241f;
    p = p * z + 0.40024991f;
    p = p * z + 0.66666313f;
    return (p * z + 2.0f) * s;
}

constexpr float LARGEST_ANGLE = 1e4f;

// sin and cos of angles up to LARGEST_ANGLE; beyond it the reduction loses digits.
static inline void sincos_small(Vec x, Vec& sine, Vec& cosine) {
    const Vec rounder = splat(12582912.0f);
    const Vec shifted = x * 0.636619772f + rounder;
    const Vec n = shifted - rounder;
    const IntVec quadrant = (IntVec)shifted;
    Vec r = x - n * 1.5703125f;  // pi/2 in three parts (Cody and Waite)
    r = r - n * 4.837512969970703125e-4f;
    r = r - n * 7.54978995489188216e-8f;
    const Vec z = r * r;
    Vec s = z * -1.9515295891e-4f + 8.3321608736e-3f;
    s = s * z - 1.6666654611e-1f;
    s = s * z * r + r;
    Vec c = z * 2.443315711809948e-5f - 1.388731625493765e-3f;
    c = c * z + 4.166664568298827e-2f;
    c = c * z * z - z * 0.5f + 1.0f;
    const IntVec odd = (quadrant & 1) != 0;
    const Vec first = odd ? c : s, second = odd ? s : c;
    sine = (Vec)((IntVec)first ^ ((quadrant & 2) << 30));
    cosine = (Vec)((IntVec)second ^ (((quadrant + 1) & 2) << 30));
}

// sin and cos of n angles, any size; the three arrays have room for whole vectors.
static inline void sincos(ptrdiff_t n, const float* angle, float* sine, float* cosine) {
    const Vec largest = splat(LARGEST_ANGLE);
    IntVec beyond = {};
    for (ptrdiff_t i = 0; i < n; i += VW) {
        const Vec x = load(angle + i);
        Vec s, c;
        sincos_small(x, s, c);
        store(sine + i, s);
        store(cosine + i, c);
        beyond |= absolute(x) > largest;
    }
    if (!any(beyond)) return;
    for (ptrdiff_t i = 0; i < n; ++i)
        if (std::fabs(angle[i]) > LARGEST_ANGLE) {
            sine[i] = std::sin(angle[i]);
            cosine[i] = std::cos(angle[i]);
        }
}

enum Activation : int32_t { SILU, GELU, LEAKY, SOFTPLUS, TANH, NUM_ACTIVATIONS };

// The activation of x and its derivative, which share most of their work. `slope` is LEAKY's on the
// negative side; ReLU is slope 0.
template <Activation activation>
static inline void activate(Vec x, float slope, Vec& value, Vec& derivative) {
    if constexpr (activation == SILU) {
        const Vec s = 1.0f / (exp_vec(-x) + 1.0f);
        value = x * s;
        derivative = value * (1.0f - s) + s;
    } else if constexpr (activation == GELU) {
        // The normal law's tail beyond |x| is exp(-x²/2) times a polynomial in 1 / (1 + 0.3 |x|) to
        // 1.3e-7 of itself, so both results need one exponential and small values keep their digits.
        const Vec e = exp_vec(x * x * -0.5f), t = 1.0f / (absolute(x) * 0.3f + 1.0f);
        Vec p = t * 0.035931398f - 0.158274522f;
        p = p * t + 0.208203937f;
        p = p * t - 0.055391284f;
        p = p * t + 0.129467790f;
        p = p * t + 0.099637936f;
        p = p * t + 0.120798285f;
        p = p * t + 0.119626395f;
        const Vec tail = p * t * e;
        const Vec below = x > 0.0f ? 1.0f - tail : tail;
        value = x * below;
        derivative = x * e * 0.398942280f + below;
    } else if constexpr (activation == LEAKY) {
        value = x > 0.0f ? x : x * slope;
        derivative = x > 0.0f ? splat(1.0f) : splat(slope);
    } else if constexpr (activation == SOFTPLUS) {
        const Vec e = exp_vec(-absolute(x)), s = 1.0f / (e + 1.0f);
        value = (x > 0.0f ? x : splat(0.0f)) + log1p_unit(e);
        derivative = x > 0.0f ? s : e * s;
    } else {
        const Vec e = exp_vec(absolute(x) * -2.0f), u = 1.0f / (e + 1.0f), z = x * x;
        Vec p = z * -5.70498872745e-3f + 2.06390887954e-2f;  // below 0.625, where 1 - e would cancel
        p = p * z - 5.37397155531e-2f;
        p = p * z + 1.33314422036e-1f;
        p = p * z - 3.33332819422e-1f;
        value = absolute(x) < splat(0.625f) ? p * z * x + x : copy_sign((1.0f - e) * u, x);
        derivative = e * u * u * 4.0f;
    }
}
