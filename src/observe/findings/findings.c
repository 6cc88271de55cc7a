/* findings.c - the rules, one function each. A rule says a sentence for each
 * line of runs; of more than LINES_MOST lines it says the range over all, or
 * nothing, because nobody reads ten sentences alike. Numbers are those of the
 * table, and what the spread of repetitions explains is called so. */
#include "observe/findings/findings.h"

#include "observe/findings/line.h"
#include "observe/runs/compare.h"

#include <math.h>
#include <string.h>

#define LINES_MOST 4
#define KEPT       0.003 /* of accuracy: without repetitions, less is kept */

typedef struct findings {
    const pl_records *records;
    pl_line_flags flags;
    pl_buffer *out;
} findings;

static bool met_target(const pl_record *record)
{
    return strcmp(pl_record_stopped_by(record), "stop_loss") == 0;
}

static size_t count_met(const pl_records *records)
{
    size_t met = 0;
    for (size_t i = 0; i < records->count; i++)
        met += met_target(&records->list[i]);
    return met;
}

/* "mode sync: "; nothing for the only line. */
static void put_label(const findings *f, const pl_line *line)
{
    if (strcmp(line->label, "all runs") != 0)
        pl_buffer_format(f->out, "%s: ", line->label);
}

/* --- target ----------------------------------------------------------- */

/* The run that met it in the least time; none: count. */
static size_t fastest(const pl_records *records, size_t without)
{
    size_t best = records->count;
    double least = INFINITY, spread;
    for (size_t i = 0; i < records->count; i++) {
        if (i == without || !met_target(&records->list[i]) ||
            pl_records_first_like(records, i) != i)
            continue;
        double seconds = pl_compare_mean(records, i, "seconds", &spread);
        if (seconds < least) {
            least = seconds;
            best = i;
        }
    }
    return best;
}

static void find_target(const findings *f)
{
    const pl_records *r = f->records;
    char label[PL_LINE_LABEL_BYTES];
    size_t met = count_met(r), first = fastest(r, r->count);
    if (first == r->count)
        return;
    size_t second = fastest(r, first);
    double spread, steps = pl_compare_mean(r, first, "steps", &spread);
    pl_line_point best = { 0 }, next = { 0 };
    best.y = pl_compare_mean(r, first, "seconds", &best.spread);
    pl_compare_label(r, first, f->flags.names, f->flags.count, "", label,
                     sizeof label);
    pl_buffer_format(f->out, "Fastest to the loss: %s, %.2f s and %.0f steps",
                     label, best.y, steps);
    if (second < r->count) {
        next.y = pl_compare_mean(r, second, "seconds", &next.spread);
        pl_compare_label(r, second, f->flags.names, f->flags.count, "", label,
                         sizeof label);
        if (pl_line_within_spread(&best, &next))
            pl_buffer_format(f->out, " (%s is within the spread of it)", label);
    }
    if (met < r->count)
        pl_buffer_format(f->out, "; %zu of %zu runs did not meet it",
                         r->count - met, r->count);
    pl_buffer_text(f->out, ".\n");
}

/* --- speed ------------------------------------------------------------ */

static void put_speed(const findings *f, const pl_line *line)
{
    const pl_line_point *one = &line->points[0];
    const pl_line_point *most = &line->points[line->count - 1];
    double gain = most->y / one->y;
    put_label(f, line);
    if (pl_line_within_spread(one, most))
        pl_buffer_format(f->out,
                         "%.0f workers are as fast as %.0f, within the spread "
                         "of the repetitions.\n",
                         most->x, one->x);
    else
        pl_buffer_format(f->out,
                         "%.0f workers process %.2f times the examples/s of "
                         "%.0f (efficiency %.0f %%).\n",
                         most->x, gain, one->x, 100 * gain * one->x / most->x);
}

static void put_speeds(const findings *f, const pl_lines *lines)
{
    double least = INFINITY, largest = -INFINITY;
    const pl_line *first = &lines->list[0];
    double one = first->points[0].x, most = first->points[first->count - 1].x;
    for (size_t i = 0; i < lines->count; i++) {
        const pl_line *line = &lines->list[i];
        double gain = line->points[line->count - 1].y / line->points[0].y;
        if (line->points[0].x != one || line->points[line->count - 1].x != most)
            return;
        least = fmin(least, gain);
        largest = fmax(largest, gain);
    }
    pl_buffer_format(f->out,
                     "%.0f workers process %.2f to %.2f times the examples/s "
                     "of %.0f, over %zu configurations (efficiency %.0f to "
                     "%.0f %%).\n",
                     most, least, largest, one, lines->count,
                     100 * least * one / most, 100 * largest * one / most);
}

static pl_status find_speed(const findings *f)
{
    pl_lines lines;
    PL_TRY(pl_lines_init(&lines, f->records, &f->flags, "workers",
                         "examples_per_s"));
    bool usable = true;
    for (size_t i = 0; i < lines.count; i++)
        usable = usable && lines.list[i].points[0].x >= 1 &&
                 lines.list[i].points[0].y > 0;
    if (usable && lines.count > LINES_MOST)
        put_speeds(f, &lines);
    for (size_t i = 0; usable && lines.count <= LINES_MOST && i < lines.count;
         i++)
        put_speed(f, &lines.list[i]);
    pl_lines_close(&lines);
    return PL_OK;
}

/* --- accuracy --------------------------------------------------------- */

static bool is_monotone(const pl_line *line, double sign)
{
    for (size_t i = 1; i < line->count; i++)
        if (sign * (line->points[i].y - line->points[i - 1].y) < 0)
            return false;
    return true;
}

static void put_accuracy(const findings *f, const pl_line *line,
                         const char *flag)
{
    const pl_line_point *low = line->points, *high = line->points;
    const pl_line_point *first = line->points;
    const pl_line_point *last = &line->points[line->count - 1];
    for (const pl_line_point *p = first; p <= last; p++) {
        low = p->y < low->y ? p : low;
        high = p->y > high->y ? p : high;
    }
    bool repeated = hypot(low->spread, high->spread) > 0;
    bool within = pl_line_within_spread(low, high);
    put_label(f, line);
    if (within || (!repeated && high->y - low->y < KEPT))
        pl_buffer_format(f->out,
                         "test accuracy keeps %.2f to %.2f %% for %s %g to "
                         "%g%s.\n",
                         100 * low->y, 100 * high->y, flag, first->x, last->x,
                         within ? ", within the spread of the repetitions"
                                : "");
    else if (is_monotone(line, 1) || is_monotone(line, -1))
        pl_buffer_format(f->out,
                         "test accuracy %s from %.2f %% (%s %g) to %.2f %% "
                         "(%s %g), by %.2f points.\n",
                         last->y > first->y ? "rises" : "falls", 100 * first->y,
                         flag, first->x, 100 * last->y, flag, last->x,
                         100 * fabs(last->y - first->y));
    else
        pl_buffer_format(f->out,
                         "test accuracy is best at %s %g, %.2f %%, and worst "
                         "at %s %g, %.2f %%.\n",
                         flag, high->x, 100 * high->y, flag, low->x,
                         100 * low->y);
}

static pl_status find_accuracy(const findings *f, const char *flag)
{
    pl_lines lines;
    PL_TRY(pl_lines_init(&lines, f->records, &f->flags, flag, "test_accuracy"));
    for (size_t i = 0; lines.count <= LINES_MOST && i < lines.count; i++)
        put_accuracy(f, &lines.list[i], flag);
    pl_lines_close(&lines);
    return PL_OK;
}

/* --- mode ------------------------------------------------------------- */

/* The run that is like run `sync` in all but the mode; none: count. */
static size_t find_async(const findings *f, size_t sync)
{
    const pl_records *r = f->records;
    char label[PL_LINE_LABEL_BYTES], other[PL_LINE_LABEL_BYTES];
    pl_compare_label(r, sync, f->flags.names, f->flags.count, "mode", label,
                     sizeof label);
    for (size_t i = 0; i < r->count; i++) {
        pl_compare_label(r, i, f->flags.names, f->flags.count, "mode", other,
                         sizeof other);
        const char *mode = pl_record_arg(&r->list[i], "mode");
        if (strcmp(mode, "async") == 0 && pl_records_first_like(r, i) == i &&
            strcmp(label, other) == 0)
            return i;
    }
    return r->count;
}

static void find_mode(const findings *f)
{
    const pl_records *r = f->records;
    double least = INFINITY, largest = -INFINITY;
    size_t pairs = 0, within = 0;
    for (size_t i = 0; i < r->count; i++) {
        pl_line_point sync, async;
        const char *mode = pl_record_arg(&r->list[i], "mode");
        if (strcmp(mode, "sync") != 0 || pl_records_first_like(r, i) != i)
            continue;
        size_t other = find_async(f, i);
        if (other == r->count)
            continue;
        sync.y = pl_compare_mean(r, i, "test_accuracy", &sync.spread);
        async.y = pl_compare_mean(r, other, "test_accuracy", &async.spread);
        if (isnan(sync.y) || isnan(async.y))
            continue;
        pairs++;
        within += pl_line_within_spread(&sync, &async);
        least = fmin(least, sync.y - async.y);
        largest = fmax(largest, sync.y - async.y);
    }
    if (pairs == 0)
        return;
    pl_buffer_format(f->out, "Test accuracy of sync against async, all else "
                             "equal: ");
    if (pairs == 1)
        pl_buffer_format(f->out, "%+.2f points", 100 * least);
    else
        pl_buffer_format(f->out, "%+.2f to %+.2f points over %zu pairs",
                         100 * least, 100 * largest, pairs);
    if (within > 0 && within == pairs)
        pl_buffer_text(f->out, ", within the spread of the repetitions");
    else if (within > 0)
        pl_buffer_format(f->out, ", %zu of them within the spread", within);
    pl_buffer_text(f->out, ".\n");
}

/* --- limit ------------------------------------------------------------ */

static size_t count_limited(const pl_records *r, const char *what)
{
    size_t count = 0;
    for (size_t i = 0; i < r->count; i++)
        count += r->list[i].ended && r->list[i].summary.has_bottleneck &&
                 strcmp(r->list[i].summary.bottleneck.what, what) == 0;
    return count;
}

/* What limited most runs. */
static void find_limit(const findings *f)
{
    const pl_records *r = f->records;
    const char *what = NULL;
    size_t most = 0;
    for (size_t i = 0; i < r->count; i++) {
        const pl_summary *s = &r->list[i].summary;
        size_t count = r->list[i].ended && s->has_bottleneck
                           ? count_limited(r, s->bottleneck.what)
                           : 0;
        if (count > most) {
            most = count;
            what = s->bottleneck.what;
        }
    }
    if (what != NULL && what[0] != '\0')
        pl_buffer_format(f->out, "What limits: %s, in %zu of %zu runs.\n", what,
                         most, r->count);
}

pl_status pl_findings(const pl_records *part, pl_buffer *out)
{
    findings f = { .records = part, .out = out };
    if (part->count < 2)
        return PL_OK;
    f.flags.count = pl_compare_args(part, f.flags.names, PL_LINE_FLAGS_MOST);
    find_target(&f);
    PL_TRY(find_speed(&f));
    /* At a loss that all reach, accuracy is about the same. */
    for (size_t i = 0; count_met(part) == 0 && i < f.flags.count; i++)
        if (!pl_compare_follows(part, f.flags.names, f.flags.count,
                                f.flags.names[i]))
            PL_TRY(find_accuracy(&f, f.flags.names[i]));
    if (count_met(part) == 0)
        find_mode(&f);
    find_limit(&f);
    return pl_buffer_status(out);
}
