#include "ops_case.h"

#include "bench.h"
#include "tensor/shape.h"

#include <stdio.h>
#include <string.h>

typedef struct timed {
    const ops_case *c;
    const ops_work *work;
} timed;

static void run_timed(void *arg, int64_t times)
{
    const timed *t = arg;
    for (int64_t i = 0; i < times; i++)
        ops_case_run(t->c, t->work);
}

/* "[100, 784] [10, 784] [10]" */
static void shapes_text(const pl_op_case *shapes, char *text, size_t room)
{
    size_t used = 0;
    char one[PL_SHAPE_TEXT];
    for (int i = 0; i < PL_MAX_INPUTS && shapes->inputs[i].rank > 0; i++)
        used +=
            (size_t)snprintf(text + used, room - used, "%s%s", i > 0 ? " " : "",
                             pl_shape_text(shapes->inputs[i], one));
}

/* Time, rate and share of one direction; empty cells when it has no steps. */
static void put_work(bench *b, const ops_case *c, const ops_work *work,
                     const char *direction)
{
    char ns[32], rate[32], share[32];
    snprintf(ns, sizeof ns, "%s ns", direction);
    snprintf(rate, sizeof rate, "%s rate", direction);
    snprintf(share, sizeof share, "%s share", direction);
    if (work->steps == 0) {
        table_empty(&b->table, ns);
        table_empty(&b->table, rate);
        table_empty(&b->table, share);
        return;
    }
    timed t = { c, work };
    measurement m = measure(&(measure_opts) {
        .run = run_timed, .arg = &t, .window_s = b->window_s / 10 });
    const limits *most = bench_limits_of(b, c->state.kernels);
    bool flops = work->flops > 0;
    double per_ns = (flops ? work->flops : work->bytes) / m.median;
    table_measured(&b->table, ns, m);
    table_number(&b->table, rate, per_ns);
    table_share(&b->table, share, per_ns,
                flops ? most->gflops_one : most->cache_gbs);
}

static pl_status bench_case(bench *b, const pl_op *op, const ops_case_opts *o,
                            bool *reads_uint8)
{
    ops_case c;
    char text[256];
    PL_TRY(ops_case_init(&c, o));
    *reads_uint8 = ops_case_reads_uint8(&c);
    if (c.forward.steps > 0) {
        shapes_text(o->shapes, text, sizeof text);
        table_text(&b->table, "operator", op->name);
        table_text(&b->table, "inputs", text);
        table_text(&b->table, "of", o->uint8 ? "uint8" : "float32");
        table_text(&b->table, "unit", c.forward.flops > 0 ? "GFLOP/s" : "GB/s");
        put_work(b, &c, &c.forward, "forward");
        put_work(b, &c, &c.backward, "backward");
        table_row_end(&b->table);
    }
    ops_case_close(&c);
    return PL_OK;
}

static pl_status bench_table(bench *b, const pl_kernels *kernels)
{
    static const pl_op *const list[] = {
#define BENCH_OP(name) &pl_op_##name,
        PL_OP_LIST(BENCH_OP)
#undef BENCH_OP
            NULL
    };
    for (const pl_op *const *op = list; *op != NULL; op++) {
        const pl_op_case *shapes = (*op)->cases;
        for (; shapes != NULL && shapes->build != NULL; shapes++) {
            ops_case_opts o = { .shapes = shapes, .kernels = kernels };
            bool uint8 = false;
            pl_status status = bench_case(b, *op, &o, &uint8);
            if (status == PL_OK && uint8) {
                o.uint8 = true;
                status = bench_case(b, *op, &o, &uint8);
            }
            if (status != PL_OK)
                return pl_context(status, "operator %s", (*op)->name);
        }
    }
    return PL_OK;
}

pl_status bench_ops(bench *b)
{
    PL_TRY(bench_need_cpu_limits(b));
    for (const pl_kernels *const *k = pl_kernels_all(); *k != NULL; k++) {
        if (pl_kernels_find((*k)->name) == NULL)
            continue;
        char title[64], part[64];
        snprintf(part, sizeof part, "ops.%s", (*k)->name);
        snprintf(title, sizeof title, "Operators, %s", (*k)->name);
        table_begin(&b->table, part, title,
                    "One thread, data in cache.  Products: share of the "
                    "multiply-adds a thread can do;\nothers: of saxpy in "
                    "cache.  Backward is all gradients of the operator.");
        PL_TRY(bench_table(b, *k));
        table_end(&b->table);
    }
    return PL_OK;
}
