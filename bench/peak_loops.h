/* The loops of peak.c for one vector width; included once for each, with
 * PEAK_NAME, PEAK_LANES and PEAK_TARGET set.  No include guard: on purpose. */

#define PEAK_JOIN2(name, isa) name##_##isa
#define PEAK_JOIN(name, isa)  PEAK_JOIN2(name, isa)
#define PEAK(name)            PEAK_JOIN(name, PEAK_NAME)

typedef float PEAK(vf) __attribute__((vector_size(PEAK_LANES * 4)));

/* Twelve chains hide the latency of two units: 4 cycles fused, 8 apart.  As
 * variables, not an array, they stay in registers with every compiler. */
PEAK_TARGET static float PEAK(fma)(int64_t turns)
{
    PEAK(vf)
    a0 = { 0 }, a1 = a0 + 1, a2 = a0 + 2, a3 = a0 + 3, a4 = a0 + 4, a5 = a0 + 5,
    a6 = a0 + 6, a7 = a0 + 7, a8 = a0 + 8, a9 = a0 + 9, a10 = a0 + 10,
    a11 = a0 + 11;
    float near_one = 0.999f, little = 0.001f;
    __asm__("" : "+m"(near_one), "+m"(little)); /* not known when compiling */
    PEAK(vf) factor = a0 + near_one, term = a0 + little;
    for (int64_t i = 0; i < turns; i++) {
        a0 = a0 * factor + term;
        a1 = a1 * factor + term;
        a2 = a2 * factor + term;
        a3 = a3 * factor + term;
        a4 = a4 * factor + term;
        a5 = a5 * factor + term;
        a6 = a6 * factor + term;
        a7 = a7 * factor + term;
        a8 = a8 * factor + term;
        a9 = a9 * factor + term;
        a10 = a10 * factor + term;
        a11 = a11 * factor + term;
    }
    PEAK(vf) sum = a0 + a1 + a2 + a3 + a4 + a5 + a6 + a7 + a8 + a9 + a10 + a11;
    return sum[0] + sum[PEAK_LANES - 1];
}

PEAK_TARGET static float PEAK(read)(int64_t n, const float *src)
{
    const PEAK(vf) *v = (const PEAK(vf) *)src;
    PEAK(vf)
    s0 = { 0 }, s1 = s0, s2 = s0, s3 = s0, s4 = s0, s5 = s0, s6 = s0, s7 = s0;
    for (int64_t i = 0; i < n / PEAK_LANES; i += 8) {
        s0 += v[i];
        s1 += v[i + 1];
        s2 += v[i + 2];
        s3 += v[i + 3];
        s4 += v[i + 4];
        s5 += v[i + 5];
        s6 += v[i + 6];
        s7 += v[i + 7];
    }
    PEAK(vf) sum = s0 + s1 + s2 + s3 + s4 + s5 + s6 + s7;
    return sum[0] + sum[PEAK_LANES - 1];
}

PEAK_TARGET static void PEAK(saxpy)(int64_t n, float factor, const float *src,
                                    float *dst)
{
    const PEAK(vf) *v = (const PEAK(vf) *)src;
    PEAK(vf) *w = (PEAK(vf) *)dst;
    for (int64_t i = 0; i < n / PEAK_LANES; i += 4) {
        w[i] += factor * v[i];
        w[i + 1] += factor * v[i + 1];
        w[i + 2] += factor * v[i + 2];
        w[i + 3] += factor * v[i + 3];
    }
}

#undef PEAK
#undef PEAK_JOIN
#undef PEAK_JOIN2
#undef PEAK_NAME
#undef PEAK_LANES
#undef PEAK_TARGET
