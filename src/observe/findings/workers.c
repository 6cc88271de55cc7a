/* workers.c - rules about workers: how more of them change the steps and time
 * to a loss, why averaged gradients learn less in equal epochs, and whether
 * asynchronous workers make equal shares of the steps. */
#include "observe/findings/findings_priv.h"

#include "observe/compare/compare.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define UNEVEN 1.5  /* factor between workers' steps worth a sentence */
#define FEWER  1.2  /* factor in steps: more than rounding of epochs */
#define EQUAL  0.02 /* of the epochs: meant to be equal */

/* --- reaching a target ------------------------------------------------ */

/* A result with the most workers, relative to the fewest. */
typedef struct ratio {
    double least, largest, few, many;
    size_t lines, within;
} ratio;

static bool is_met(const pl_finding *f, const pl_line_point *point)
{
    return pl_finding_is_met(&f->records->list[point->run]) && point->y > 0;
}

static void put_line(const pl_finding *f, const pl_line *line, ratio *r)
{
    const pl_line_point *few = line->points;
    const pl_line_point *many = &line->points[line->count - 1];
    if (few->x < 1 || !is_met(f, few) || !is_met(f, many))
        return;
    if (r->lines > 0 && (few->x != r->few || many->x != r->many)) {
        r->lines = SIZE_MAX; /* the numbers of workers differ */
        return;
    }
    r->least =
        r->lines > 0 ? fmin(r->least, many->y / few->y) : many->y / few->y;
    r->largest = fmax(r->largest, many->y / few->y);
    r->few = few->x;
    r->many = many->x;
    r->within += pl_line_within_spread(few, many);
    r->lines++;
}

/* Over the lines of one mode; lines is 0 if there are none, or unlike ones. */
static pl_status compare_workers(const pl_finding *f, const char *mode,
                                 const char *result, ratio *out)
{
    pl_lines lines;
    *out = (ratio) { 0 };
    PL_TRY(pl_lines_init(&lines, f->records, &f->flags, "workers", result));
    for (size_t i = 0; i < lines.count && out->lines != SIZE_MAX; i++) {
        const pl_line *line = &lines.list[i];
        size_t last = line->points[line->count - 1].run;
        const char *own = f->records->list[last].summary.mode;
        if (f->records->list[last].ended &&
            strcmp(own != NULL ? own : "", mode) == 0)
            put_line(f, line, out);
    }
    if (out->lines == SIZE_MAX)
        *out = (ratio) { 0 };
    pl_lines_close(&lines);
    return PL_OK;
}

static void put_ratio(const pl_finding *f, const ratio *r, const char *what)
{
    pl_buffer_format(f->out, "%.2f", r->least);
    if (r->largest > 1.01 * r->least)
        pl_buffer_format(f->out, " to %.2f", r->largest);
    pl_buffer_format(f->out, " times the %s", what);
}

pl_status pl_finding_way(const pl_finding *f)
{
    static const char *const modes[] = { "sync", "async", "ssp", "" };
    for (size_t m = 0; m < sizeof modes / sizeof *modes; m++) {
        ratio steps, seconds;
        PL_TRY(compare_workers(f, modes[m], "steps", &steps));
        PL_TRY(compare_workers(f, modes[m], "seconds", &seconds));
        if (steps.lines == 0 || seconds.lines != steps.lines)
            continue;
        bool alone = modes[m][0] == '\0';
        pl_buffer_format(
            f->out, "%s%s%s %.0f workers take ", alone ? "" : "mode ", modes[m],
            alone ? "To the target" : ": to the target", steps.many);
        put_ratio(f, &steps, "steps");
        pl_buffer_format(f->out, " of %.0f and ", steps.few);
        put_ratio(f, &seconds, "time");
        if (seconds.within == seconds.lines)
            pl_buffer_text(f->out, ", within the spread of the repetitions");
        if (steps.lines > 1)
            pl_buffer_format(f->out, ", over %zu configurations", steps.lines);
        pl_buffer_text(f->out, ".\n");
    }
    return PL_OK;
}

/* --- averaged gradients ----------------------------------------------- */

static bool averages(const pl_finding *f, size_t run)
{
    const pl_record *record = &f->records->list[run];
    const pl_summary *s = &record->summary;
    const char *aggregate = pl_record_arg(record, "aggregate");
    bool together = s->mode != NULL ? strcmp(s->mode, "sync") == 0
                                    : s->strategy != NULL &&
                                          strcmp(s->strategy, "allreduce") == 0;
    return record->ended && s->workers > 1 && together &&
           strcmp(aggregate, "sum") != 0;
}

static void put_averaging(const pl_finding *f, const pl_line *line)
{
    const pl_line_point *few = line->points;
    const pl_line_point *many = &line->points[line->count - 1];
    double spread;
    double epochs = pl_compare_mean(f->records, few->run, "epochs", &spread);
    double same = pl_compare_mean(f->records, many->run, "epochs", &spread);
    double steps = pl_compare_mean(f->records, few->run, "steps", &spread);
    double left = pl_compare_mean(f->records, many->run, "steps", &spread);
    if (!averages(f, many->run) || few->y - many->y < PL_FINDING_KEPT ||
        pl_line_within_spread(few, many) ||
        !(fabs(epochs - same) <= EQUAL * epochs) || !(steps > FEWER * left))
        return;
    bool alone = strcmp(line->label, "all runs") == 0;
    pl_buffer_format(f->out,
                     "%s%s %.0f workers make %.0f steps instead of "
                     "%.0f, since each step averages the gradients of all; "
                     "--aggregate sum adds them up.\n",
                     alone ? "" : line->label,
                     alone ? "In equal epochs" : ": in equal epochs", many->x,
                     left, steps);
}

pl_status pl_finding_averaging(const pl_finding *f)
{
    pl_lines lines;
    PL_TRY(pl_lines_init(&lines, f->records, &f->flags, "workers",
                         "test_accuracy"));
    for (size_t i = 0; lines.count <= PL_FINDING_LINES && i < lines.count; i++)
        put_averaging(f, &lines.list[i]);
    pl_lines_close(&lines);
    return PL_OK;
}

/* --- shares of the work ----------------------------------------------- */

/* Ratio of the most steps of a worker to the fewest; INFINITY: a worker made
 * none, since it joined when the job was over.  0: not known, or in lock
 * step. */
static double unevenness(const pl_record *record, int32_t *most)
{
    const pl_summary *s = &record->summary;
    bool own_pace = record->ended && s->mode != NULL &&
                    strcmp(s->mode, "sync") != 0 && s->worker_count > 1;
    int64_t large = 0, small = INT64_MAX;
    for (size_t i = 0; own_pace && i < s->worker_count; i++) {
        int64_t steps = s->per_worker[i].steps;
        if (steps < 0)
            return 0;
        if (steps > large) {
            large = steps;
            *most = s->per_worker[i].index;
        }
        small = steps < small ? steps : small;
    }
    if (!own_pace || large == 0)
        return 0;
    return small > 0 ? (double)large / (double)small : INFINITY;
}

typedef struct shares {
    size_t runs, uneven, idle, first; /* idle: a worker made no step */
    double least, largest;            /* excluding idle workers */
} shares;

static shares count_shares(const pl_records *r)
{
    shares all = { .least = INFINITY };
    for (size_t i = 0; i < r->count; i++) {
        int32_t most = 0;
        double times = unevenness(&r->list[i], &most);
        all.runs += times > 0;
        if (!(times >= UNEVEN))
            continue;
        all.uneven++;
        all.first += most == 0;
        if (isinf(times)) {
            all.idle++;
            continue;
        }
        all.least = fmin(all.least, times);
        all.largest = fmax(all.largest, times);
    }
    return all;
}

void pl_finding_shares(const pl_finding *f)
{
    shares all = count_shares(f->records);
    if (2 * all.uneven <= all.runs)
        return;
    pl_buffer_format(f->out,
                     "Workers that do not wait for each other share the steps "
                     "unevenly in %zu of %zu runs: ",
                     all.uneven, all.runs);
    if (all.uneven > all.idle) {
        pl_buffer_format(f->out, "one makes %.1f", all.least);
        if (all.largest >= all.least + 0.05)
            pl_buffer_format(f->out, " to %.1f", all.largest);
        pl_buffer_text(f->out, " times the steps of another; ");
    }
    if (all.idle > 0)
        pl_buffer_format(f->out, "in %zu a worker makes none; ", all.idle);
    pl_buffer_format(f->out, "worker 0 makes the most in %zu of them.\n",
                     all.first);
}
