/* pass.c - one pass over the batches of a sparse source, with a progress line
 * and a summary of what was skipped. */
#include "app/data/pass.h"

#include "app/view/layout.h"
#include "base/clock.h"
#include "base/text/console.h"
#include "data/sparse/set.h"

#include <stdio.h>
#include <unistd.h>

#define BATCH     4096
#define REDRAW_NS ((int64_t)200 * 1000000)
#define PLAIN_NS  ((int64_t)5000 * 1000000)

/* The state of the progress line. */
typedef struct meter {
    const pl_data_pass *pass;
    int64_t count; /* examples expected; -1: not known */
    int64_t begin_ns, shown_ns;
    bool terminal;
} meter;

static void show(meter *m, bool last)
{
    int64_t now = pl_clock_now_ns(pl_clock_real());
    if (m->pass->quiet ||
        (!last && now - m->shown_ns < (m->terminal ? REDRAW_NS : PLAIN_NS)) ||
        (last && m->shown_ns == m->begin_ns))
        return;
    char done[16], all[16], rate[16];
    double seconds = (double)(now - m->begin_ns) * 1e-9;
    double examples = (double)m->pass->examples;
    double share = m->count > 0 ? 100 * examples / (double)m->count : 100;
    pl_console_print("%s%s %s of %s examples (%.0f %%), %s/s%s",
                     m->terminal ? "\r" : "", m->pass->verb,
                     pl_layout_number(examples, done),
                     pl_layout_number((double)m->count, all), share,
                     pl_layout_number(examples / seconds, rate),
                     m->terminal && !last ? "\033[K" : "\n");
    m->shown_ns = now;
}

static pl_status read_all(pl_data_pass *pass, pl_reader *reader, meter *m)
{
    for (;;) {
        pl_batch batch;
        PL_TRY(pl_reader_next(reader, &batch));
        if (batch.rows == 0)
            return PL_OK;
        PL_TRY(pass->use(pass->context, &batch));
        pass->examples += batch.rows;
        show(m, false);
    }
}

pl_status pl_data_pass_run(pl_data_pass *pass)
{
    pl_dataset *set;
    pl_reader *reader = NULL;
    meter m = { .pass = pass,
                .begin_ns = pl_clock_now_ns(pl_clock_real()),
                .terminal = isatty(STDERR_FILENO) == 1 };
    m.shown_ns = m.begin_ns;
    PL_TRY(pl_source_open(&set, pass->source, PL_SPLIT_TRAIN, pass->opts));
    m.count = set->count;
    pass->numbering = set->numbering;
    pl_status status;
    if (!set->sparse)
        status = PL_FAIL(PL_USAGE,
                         "%s has dense examples; only sparse ones are "
                         "converted and counted",
                         pass->source);
    else
        status = pl_reader_new(
            &reader, set,
            &(pl_reader_opts) { .batch = BATCH, .one_pass = true });
    if (status == PL_OK)
        status = read_all(pass, reader, &m);
    show(&m, true);
    pass->seconds =
        (double)(pl_clock_now_ns(pl_clock_real()) - m.begin_ns) * 1e-9;
    pl_reader_free(reader);
    if (status == PL_OK && pl_sparse_set_is(set))
        pass->bad = pl_sparse_set_bad((pl_sparse_set *)set);
    pl_dataset_free(set);
    return status;
}
