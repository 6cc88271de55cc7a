/* findings.c - the rules, one function each. A rule writes a sentence for each
 * line of runs; for more than LINES_MOST lines it writes the range over all, or
 * nothing, since ten similar sentences go unread. Numbers are those of the
 * table, and differences within the spread of repetitions are described as
 * such. */
#include "observe/findings/findings_priv.h"

#include "observe/compare/compare.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define LINES_MOST PL_FINDING_LINES
#define KEPT       PL_FINDING_KEPT

static bool met(const pl_record *record, const char *target)
{
    return strcmp(pl_record_stopped_by(record), target) == 0;
}

static size_t count_met(const pl_records *records)
{
    size_t count = 0;
    for (size_t i = 0; i < records->count; i++)
        count += pl_finding_is_met(&records->list[i]);
    return count;
}

void pl_finding_subject(const pl_finding *f, const pl_line *line,
                        const char *what)
{
    if (strcmp(line->label, "all runs") != 0)
        pl_buffer_format(f->out, "%s: %s", line->label, what);
    else if (what[0] != '\0')
        pl_buffer_format(f->out, "%c%s", toupper((unsigned char)what[0]),
                         what + 1);
}

/* --- target ----------------------------------------------------------- */

/* The run that met the target in the least time; none: count. */
static size_t fastest(const pl_records *records, size_t without)
{
    size_t best = records->count;
    double least = INFINITY, spread;
    for (size_t i = 0; i < records->count; i++) {
        if (i == without || !pl_finding_is_met(&records->list[i]) ||
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

/* The target of the runs. */
static const char *name_target(const pl_records *records)
{
    size_t losses = 0;
    for (size_t i = 0; i < records->count; i++)
        losses += met(&records->list[i], "stop_loss");
    return losses == 0                    ? "accuracy"
           : losses == count_met(records) ? "loss"
                                          : "target";
}

static void find_target(const pl_finding *f)
{
    const pl_records *r = f->records;
    char label[PL_LINE_LABEL_BYTES];
    size_t reached = count_met(r), first = fastest(r, r->count);
    if (first == r->count)
        return;
    size_t second = fastest(r, first);
    double spread, steps = pl_compare_mean(r, first, "steps", &spread);
    pl_line_point best = { 0 }, next = { 0 };
    best.y = pl_compare_mean(r, first, "seconds", &best.spread);
    pl_compare_label(r, first, f->flags.names, f->flags.count, "", label,
                     sizeof label);
    pl_buffer_format(f->out, "Fastest to the %s: %s, %.*f s and %.0f steps",
                     name_target(r), label, best.y < 0.1 ? 4 : 2, best.y,
                     steps);
    if (second < r->count) {
        next.y = pl_compare_mean(r, second, "seconds", &next.spread);
        pl_compare_label(r, second, f->flags.names, f->flags.count, "", label,
                         sizeof label);
        if (pl_line_within_spread(&best, &next))
            pl_buffer_format(f->out, " (%s is within the spread of it)", label);
    }
    if (reached < r->count)
        pl_buffer_format(f->out, "; %zu of %zu runs did not meet it",
                         r->count - reached, r->count);
    pl_buffer_text(f->out, ".\n");
}

/* --- speed ------------------------------------------------------------ */

static void put_speed(const pl_finding *f, const pl_line *line)
{
    const pl_line_point *one = &line->points[0];
    const pl_line_point *most = &line->points[line->count - 1];
    double gain = most->y / one->y;
    pl_finding_subject(f, line, "");
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

static void put_speeds(const pl_finding *f, const pl_lines *lines)
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

static pl_status find_speed(const pl_finding *f)
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

/* "90.31 %", or for repetitions "90.31 \xc2\xb1 0.05 %". */
static const char *percent(const pl_line_point *p, char text[48])
{
    if (p->spread > 0)
        snprintf(text, 48, "%.2f \xc2\xb1 %.2f %%", 100 * p->y,
                 100 * p->spread);
    else
        snprintf(text, 48, "%.2f %%", 100 * p->y);
    return text;
}

static void put_accuracy(const pl_finding *f, const pl_line *line,
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
    char one[48], other[48];
    pl_finding_subject(f, line, "test accuracy");
    if (within || (!repeated && high->y - low->y < KEPT))
        pl_buffer_format(
            f->out, " stays between %.2f and %.2f %% (%s %g to %g)%s.\n",
            100 * low->y, 100 * high->y, flag, first->x, last->x,
            within ? ", within the spread of the repetitions" : "");
    else if (is_monotone(line, 1) || is_monotone(line, -1))
        pl_buffer_format(f->out,
                         " %s from %s (%s %g) to %s (%s %g), by %.2f "
                         "points.\n",
                         last->y > first->y ? "rises" : "falls",
                         percent(first, one), flag, first->x,
                         percent(last, other), flag, last->x,
                         100 * fabs(last->y - first->y));
    else
        pl_buffer_format(
            f->out, " is best at %s %g, %s, and worst at %s %g, %s.\n", flag,
            high->x, percent(high, one), flag, low->x, percent(low, other));
}

static pl_status find_accuracy(const pl_finding *f, const char *flag)
{
    pl_lines lines;
    PL_TRY(pl_lines_init(&lines, f->records, &f->flags, flag, "test_accuracy"));
    for (size_t i = 0; lines.count <= LINES_MOST && i < lines.count; i++)
        put_accuracy(f, &lines.list[i], flag);
    pl_lines_close(&lines);
    return PL_OK;
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

/* The run with the best cure among the runs with this limit. */
static const pl_record *most_curable(const pl_records *r, const char *what)
{
    const pl_record *best = NULL;
    for (size_t i = 0; i < r->count; i++) {
        const pl_record *own = &r->list[i];
        const pl_bottleneck *b = &own->summary.bottleneck;
        if (own->ended && own->summary.has_bottleneck &&
            strcmp(b->what, what) == 0 && b->cure_count > 0 &&
            (best == NULL ||
             b->cures[0].gain > best->summary.bottleneck.cures[0].gain))
            best = own;
    }
    return best;
}

/* ", in mode-sync_workers-3 (worker 2 on node3)" */
static void put_cure(const pl_finding *f, const char *what)
{
    const pl_record *run = most_curable(f->records, what);
    if (run == NULL)
        return;
    const pl_bottleneck *b = &run->summary.bottleneck;
    pl_buffer_format(f->out,
                     " Largest expected gain: %s, %.1f x as fast, in %s",
                     b->cures[0].text, b->cures[0].gain, run->name);
    if (b->task[0] != '\0')
        pl_buffer_format(f->out, " (%s on %s)", b->task, b->host);
    pl_buffer_text(f->out, ".");
}

/* What limited most runs. */
static void find_limit(const pl_finding *f)
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
        pl_buffer_format(f->out, "What limits: %s, in %zu of %zu runs.", what,
                         most, r->count);
    if (what == NULL || what[0] == '\0')
        return;
    put_cure(f, what);
    pl_buffer_text(f->out, "\n");
}

/* For a single run, in words, with the responsible task and the cures. */
static void find_own_limit(const pl_finding *f)
{
    const pl_record *run = &f->records->list[0];
    if (run->ended && run->summary.has_bottleneck &&
        run->summary.bottleneck.text[0] != '\0')
        pl_buffer_format(f->out, "Bottleneck: %s.\n",
                         run->summary.bottleneck.text);
}

/* Findings that depend on the duration of runs. */
static pl_status find_times(const pl_finding *f)
{
    size_t before = f->out->bytes;
    find_target(f);
    PL_TRY(pl_finding_targets(f));
    PL_TRY(pl_finding_way(f));
    PL_TRY(find_speed(f));
    PL_TRY(pl_finding_saturation(f));
    if (f->out->bytes > before)
        pl_finding_doubts(f);
    return PL_OK;
}

pl_status pl_findings(const pl_records *part, pl_buffer *out)
{
    pl_finding f = { .records = part, .out = out };
    if (part->count == 1) {
        pl_finding_traffic(&f);
        pl_finding_faults(&f);
        find_own_limit(&f);
    }
    if (part->count < 2)
        return pl_buffer_status(out);
    f.flags.count = pl_compare_args(part, f.flags.names, PL_LINE_FLAGS_MOST);
    PL_TRY(find_times(&f));
    PL_TRY(pl_finding_memory(&f));
    /* At a loss that all runs reach, accuracy is about the same. */
    for (size_t i = 0; count_met(part) == 0 && i < f.flags.count; i++)
        if (!pl_compare_follows(part, f.flags.names, f.flags.count,
                                f.flags.names[i]))
            PL_TRY(find_accuracy(&f, f.flags.names[i]));
    if (count_met(part) == 0) {
        PL_TRY(pl_finding_averaging(&f));
        pl_finding_pairs(&f);
    }
    pl_finding_waiting(&f);
    pl_finding_shares(&f);
    pl_finding_traffic(&f);
    pl_finding_faults(&f);
    pl_finding_published(&f);
    find_limit(&f);
    return pl_buffer_status(out);
}
