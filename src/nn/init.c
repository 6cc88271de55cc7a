/* Initial values of parameters: zeros, ones, uniform, normal, Glorot, He. An
 * element depends only on seed, name and index, so any part of a tensor can be
 * filled separately, on any host. */
#include "nn/init.h"

#include "base/rng.h"
#include "tensor/shape.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef enum init_kind {
    INIT_CONSTANT,
    INIT_UNIFORM, /* in -amount .. amount */
    INIT_NORMAL,  /* standard deviation amount */
    INIT_GLOROT,
    INIT_HE,
} init_kind;

typedef struct init {
    init_kind kind;
    double amount;
} init;

/* The number after "uniform:" or "normal:". */
static pl_status parse_amount(const char *spec, const char *prefix,
                              double *amount)
{
    const char *text = spec + strlen(prefix);
    char *end = NULL;
    *amount = strtod(text, &end);
    if (end == text || *end != '\0' || !isfinite(*amount) || *amount < 0)
        return PL_FAIL(PL_USAGE,
                       "init \"%s\": expected a number that is not negative "
                       "after %s",
                       spec, prefix);
    return PL_OK;
}

static pl_status parse(const char *spec, init *out)
{
    *out = (init) { INIT_CONSTANT, 0 };
    if (strcmp(spec, "zeros") == 0)
        return PL_OK;
    if (strcmp(spec, "ones") == 0) {
        out->amount = 1;
        return PL_OK;
    }
    if (strcmp(spec, "glorot") == 0) {
        out->kind = INIT_GLOROT;
        return PL_OK;
    }
    if (strcmp(spec, "he") == 0) {
        out->kind = INIT_HE;
        return PL_OK;
    }
    if (strncmp(spec, "uniform:", 8) == 0) {
        out->kind = INIT_UNIFORM;
        return parse_amount(spec, "uniform:", &out->amount);
    }
    if (strncmp(spec, "normal:", 7) == 0) {
        out->kind = INIT_NORMAL;
        return parse_amount(spec, "normal:", &out->amount);
    }
    return PL_FAIL(PL_USAGE,
                   "init \"%s\" is unknown; expected zeros, ones, uniform:A, "
                   "normal:S, glorot or he",
                   spec);
}

/* Glorot and Bengio 2010, eq. 16; He et al. 2015, eq. 10. */
static init resolve_fans(init how, pl_shape shape)
{
    double rest = 1;
    for (int i = 2; i < shape.rank; i++)
        rest *= (double)shape.dim[i];
    double out = shape.rank > 0 ? (double)shape.dim[0] * rest : 1;
    double in = shape.rank > 1 ? (double)shape.dim[1] * rest : 1;
    if (how.kind == INIT_GLOROT)
        return (init) { INIT_UNIFORM, sqrt(6 / (in + out)) };
    if (how.kind == INIT_HE)
        return (init) { INIT_NORMAL, sqrt(2 / in) };
    return how;
}

pl_status pl_init_fill(const char *spec, pl_shape shape, uint64_t seed,
                       const char *name, float *data)
{
    return pl_init_fill_part(spec, shape, seed, name, 0,
                             pl_shape_count(shape, 1), data);
}

pl_status pl_init_fill_part(const char *spec, pl_shape shape, uint64_t seed,
                            const char *name, int64_t first, int64_t count,
                            float *data)
{
    init how;
    PL_TRY(parse(spec, &how));
    how = resolve_fans(how, shape);
    uint64_t key = pl_rng_key_text(pl_rng_key_text(seed, "init"), name);
    for (int64_t i = first; i < first + count; i++) {
        double value = how.amount;
        if (how.kind == INIT_UNIFORM)
            value *= 2 * pl_rng_uniform(key, (uint64_t)i) - 1;
        else if (how.kind == INIT_NORMAL)
            value *= pl_rng_normal(key, (uint64_t)i);
        data[i - first] = (float)value;
    }
    return PL_OK;
}

pl_status pl_init_check(const char *spec)
{
    init how;
    return parse(spec, &how);
}
