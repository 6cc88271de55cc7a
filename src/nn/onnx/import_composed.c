/* import_composed.c - operators that an ONNX file composes from several nodes,
 * since its operator set lacks them: GELU, x * (1 + erf(x / sqrt(2))) / 2, and
 * layer normalization, (x - mean) / sqrt(variance + epsilon) * scale + shift.
 * Tracks which part a node has completed, and rejects other uses of the
 * parts. */
#include "nn/onnx/import.h"

#include "base/error.h"
#include "graph/graph.h"

#include <math.h>
#include <string.h>

static bool is_near(float a, float b)
{
    return fabsf(a - b) < 1e-4F;
}

/* The result continues the composed operator of input i as `part`. */
static void go_on(const pl_import *im, int i, pl_import_part part)
{
    const char *name = im->out->name;
    *im->out = *im->in[i];
    im->out->name = name;
    im->out->part = part;
}

/* --- GELU --------------------------------------------------------------- */

static pl_status error_function(pl_import *im)
{
    pl_node *src;
    PL_TRY(pl_import_in(im, 0, &src));
    if (src->op != &pl_op_scale || !is_near(src->factor, 0.70710678F))
        return PL_FAIL(PL_UNSUPPORTED,
                       "it is supported only as part of GELU, on x / sqrt(2)");
    im->out->part = PL_IMPORT_GATE;
    im->out->of = src->in[0];
    im->out->times = 1;
    return PL_OK;
}

static pl_status add_to_gate(pl_import *im, int gate)
{
    float value;
    PL_TRY(pl_import_scalar(im, 1 - gate, &value));
    go_on(im, gate, PL_IMPORT_GATE);
    im->out->plus += value;
    return PL_OK;
}

static pl_status not_a_gelu(void)
{
    return PL_FAIL(PL_UNSUPPORTED,
                   "with Erf a GELU is expected, x * (1 + erf(x / sqrt(2))) / "
                   "2");
}

/* x times half of 1 + erf(x / sqrt(2)); the half may be applied anywhere, even
 * in a later node. */
static pl_status close_gate(pl_import *im, int gate)
{
    const pl_import_value *value = im->in[gate];
    float half = 1;
    pl_node *src;
    PL_TRY(pl_import_in(im, 1 - gate, &src));
    if (src->op == &pl_op_scale && src->in[0] == value->of) {
        half = src->factor;
        src = src->in[0];
    }
    if (src != value->of || !is_near(value->times, value->plus))
        return not_a_gelu();
    if (is_near(half * value->times, 0.5F)) {
        im->out->node = pl_gelu(src);
        return PL_OK;
    }
    go_on(im, gate, PL_IMPORT_GATED);
    im->out->times *= half;
    return PL_OK;
}

static pl_status halve(pl_import *im, int gated)
{
    float factor;
    PL_TRY(pl_import_scalar(im, 1 - gated, &factor));
    if (!is_near(im->in[gated]->times * factor, 0.5F))
        return not_a_gelu();
    im->out->node = pl_gelu(im->in[gated]->of);
    return PL_OK;
}

static pl_status multiply_gate(pl_import *im, int gate)
{
    float value;
    if (!pl_import_is_scalar(im, 1 - gate))
        return close_gate(im, gate);
    PL_TRY(pl_import_scalar(im, 1 - gate, &value));
    go_on(im, gate, PL_IMPORT_GATE);
    im->out->times *= value;
    im->out->plus *= value;
    return PL_OK;
}

/* --- layer normalization ------------------------------------------------ */

static pl_status mismatch(void)
{
    return PL_FAIL(PL_UNSUPPORTED,
                   "it is supported only as part of a layer normalization, (x "
                   "- mean) / sqrt(variance + epsilon) * scale + shift");
}

pl_status pl_import_mean(pl_import *im)
{
    pl_node *src;
    if (im->in[0] != NULL && im->in[0]->part == PL_IMPORT_SQUARE) {
        go_on(im, 0, PL_IMPORT_VARIANCE);
        return PL_OK;
    }
    PL_TRY(pl_import_in(im, 0, &src));
    im->out->part = PL_IMPORT_MEAN;
    im->out->of = src;
    return PL_OK;
}

static pl_status centre(pl_import *im, int mean)
{
    if (mean != 1 || im->in[0] == NULL || im->in[0]->node != im->in[1]->of)
        return mismatch();
    go_on(im, mean, PL_IMPORT_CENTRED);
    return PL_OK;
}

/* To the power of 2, or multiplied by itself. */
static pl_status square(pl_import *im, int centred)
{
    float power = 2;
    if (strcmp(im->node->op, "Pow") == 0)
        PL_TRY(pl_import_scalar(im, 1, &power));
    else if (im->in[0] != im->in[1])
        return mismatch();
    if (power != 2 || centred != 0)
        return mismatch();
    go_on(im, 0, PL_IMPORT_SQUARE);
    return PL_OK;
}

static pl_status add_epsilon(pl_import *im, int variance)
{
    float epsilon;
    PL_TRY(pl_import_scalar(im, 1 - variance, &epsilon));
    go_on(im, variance, PL_IMPORT_VARIANCE);
    im->out->plus += epsilon;
    return PL_OK;
}

static pl_status take_root(pl_import *im, int variance)
{
    go_on(im, variance, PL_IMPORT_DEVIATION);
    return PL_OK;
}

static pl_status normalize(pl_import *im, int centred)
{
    const pl_import_value *deviation = im->in[1];
    if (centred != 0 || deviation == NULL ||
        deviation->part != PL_IMPORT_DEVIATION ||
        deviation->of != im->in[0]->of)
        return mismatch();
    go_on(im, 1, PL_IMPORT_NORMAL);
    return PL_OK;
}

static pl_status scale(pl_import *im, int normal)
{
    pl_node *factor;
    PL_TRY(pl_import_vector(im, 1 - normal, "ones", -1, &factor));
    go_on(im, normal, PL_IMPORT_SCALED);
    im->out->scale = factor;
    return PL_OK;
}

static pl_status shift(pl_import *im, int scaled)
{
    const pl_import_value *value = im->in[scaled];
    pl_node *term;
    PL_TRY(pl_import_vector(im, 1 - scaled, "zeros", -1, &term));
    im->out->node = pl_layer_norm(value->of, value->scale, term, value->plus);
    return PL_OK;
}

/* --- order of the parts ------------------------------------------------- */

static const struct step {
    pl_import_part part; /* of one of the inputs; `take` gets its number */
    const char *op;
    pl_status (*take)(pl_import *im, int i);
} steps[] = {
    { PL_IMPORT_GATE, "Add", add_to_gate },
    { PL_IMPORT_GATE, "Mul", multiply_gate },
    { PL_IMPORT_GATED, "Mul", halve },
    { PL_IMPORT_MEAN, "Sub", centre },
    { PL_IMPORT_CENTRED, "Pow", square },
    { PL_IMPORT_CENTRED, "Mul", square },
    { PL_IMPORT_CENTRED, "Div", normalize },
    { PL_IMPORT_VARIANCE, "Add", add_epsilon },
    { PL_IMPORT_VARIANCE, "Sqrt", take_root },
    { PL_IMPORT_NORMAL, "Mul", scale },
    { PL_IMPORT_SCALED, "Add", shift },
};

bool pl_import_has_part(const pl_import *im)
{
    for (int i = 0; i < PL_IMPORT_INPUTS; i++)
        if (im->in[i] != NULL && im->in[i]->part != PL_IMPORT_WHOLE)
            return true;
    return false;
}

pl_status pl_import_compose(pl_import *im)
{
    pl_node *whole;
    for (int i = 0; i < 2; i++)
        for (size_t s = 0; s < sizeof steps / sizeof *steps; s++)
            if (im->in[i] != NULL && im->in[i]->part == steps[s].part &&
                strcmp(im->node->op, steps[s].op) == 0)
                return steps[s].take(im, i);
    for (int i = 0; i < 2; i++)
        if (im->in[i] != NULL && im->in[i]->part != PL_IMPORT_WHOLE)
            return pl_import_in(im, i, &whole); /* rejects parts */
    return mismatch();
}

const pl_import_op pl_import_composed[] = {
    { "Erf", error_function },
    { "Pow", pl_import_compose },
    { "Sqrt", pl_import_compose },
    { "Sub", pl_import_compose },
    { NULL, NULL },
};
