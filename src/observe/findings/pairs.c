/* pairs.c - rules about pairs of runs that differ in only one flag: the test
 * accuracy of each two values of a choice flag, how long workers wait in sync
 * and in async, and what sparse traffic saves.  Several pairs are reported as a
 * range; repetitions count as one run, by their mean. */
#include "observe/findings/findings_priv.h"

#include "observe/compare/compare.h"

#include <math.h>
#include <string.h>

#define WORDS_MOST 4 /* values of a flag: more pairs go unread */

/* The ratio of a number of one run to its partner's. */
typedef struct range {
    double least, largest;
    size_t pairs, within; /* `within`: pairs within the spread */
} range;

static range empty_range(void)
{
    return (range) { .least = INFINITY, .largest = -INFINITY };
}

static void put_into(range *r, double value)
{
    r->least = fmin(r->least, value);
    r->largest = fmax(r->largest, value);
    r->pairs++;
}

static bool is_set(const pl_records *r, size_t run, const char *flag,
                   const char *value)
{
    return strcmp(pl_record_arg(&r->list[run], flag), value) == 0 &&
           pl_records_first_like(r, run) == run;
}

/* The run that differs from run `run` only in `flag`, which is `value` here and
 * `there` in the other; none: count. */
static size_t find_partner(const pl_finding *f, size_t run, const char *flag,
                           const char *value, const char *there)
{
    const pl_records *r = f->records;
    char label[PL_LINE_LABEL_BYTES], other[PL_LINE_LABEL_BYTES];
    if (!is_set(r, run, flag, value))
        return r->count;
    pl_compare_label(r, run, f->flags.names, f->flags.count, flag, label,
                     sizeof label);
    for (size_t i = 0; i < r->count; i++) {
        pl_compare_label(r, i, f->flags.names, f->flags.count, flag, other,
                         sizeof other);
        if (is_set(r, i, flag, there) && strcmp(label, other) == 0)
            return i;
    }
    return r->count;
}

static pl_line_point point_of(const pl_finding *f, size_t run, const char *key)
{
    pl_line_point point = { .run = run };
    point.y = pl_compare_mean(f->records, run, key, &point.spread);
    return point;
}

/* How the test accuracy of runs with `value` differs from those with
 * `there`. */
static void compare_accuracy(const pl_finding *f, const char *flag,
                             const char *value, const char *there)
{
    const pl_records *r = f->records;
    range points = empty_range();
    for (size_t i = 0; i < r->count; i++) {
        size_t other = find_partner(f, i, flag, value, there);
        if (other == r->count)
            continue;
        pl_line_point own = point_of(f, i, "test_accuracy");
        pl_line_point its = point_of(f, other, "test_accuracy");
        if (isnan(own.y) || isnan(its.y))
            continue;
        put_into(&points, own.y - its.y);
        points.within += pl_line_within_spread(&own, &its);
    }
    if (points.pairs == 0)
        return;
    pl_buffer_format(f->out,
                     "Test accuracy of %s against %s, all else "
                     "equal: ",
                     value, there);
    if (points.pairs == 1)
        pl_buffer_format(f->out, "%+.2f points", 100 * points.least);
    else
        pl_buffer_format(f->out, "%+.2f to %+.2f points over %zu pairs",
                         100 * points.least, 100 * points.largest,
                         points.pairs);
    if (points.within > 0 && points.within == points.pairs)
        pl_buffer_text(f->out, ", within the spread of the repetitions");
    else if (points.within > 0)
        pl_buffer_format(f->out, ", %zu of them within the spread",
                         points.within);
    pl_buffer_text(f->out, ".\n");
}

/* Values of the flag, in the order of the runs; more than WORDS_MOST: 0. */
static size_t list_words(const pl_finding *f, const char *flag,
                         const char *words[WORDS_MOST])
{
    const pl_records *r = f->records;
    size_t count = 0;
    for (size_t i = 0; i < r->count; i++) {
        const char *word = pl_record_arg(&r->list[i], flag);
        size_t at = 0;
        if (word[0] == '\0' || !pl_records_flag_applies(r, i, flag))
            continue;
        while (at < count && strcmp(words[at], word) != 0)
            at++;
        if (at == WORDS_MOST)
            return 0;
        if (at == count)
            words[count++] = word;
    }
    return count;
}

/* The value with which the others are compared: the default if it was tried,
 * otherwise the first. */
static size_t base_of(const pl_param *param, const char *const *words,
                      size_t count)
{
    for (size_t i = 0; param->fallback != NULL && i < count; i++)
        if (strcmp(words[i], param->fallback) == 0)
            return i;
    return 0;
}

static void compare_words(const pl_finding *f, const char *flag)
{
    const pl_param *param = pl_records_flag(f->records, flag);
    const char *words[WORDS_MOST];
    if (param == NULL || param->kind != PL_PARAM_CHOICE ||
        pl_compare_follows(f->records, f->flags.names, f->flags.count, flag))
        return;
    size_t count = list_words(f, flag, words);
    size_t base = base_of(param, words, count);
    for (size_t i = 0; i < count; i++)
        if (i != base)
            compare_accuracy(f, flag, words[i], words[base]);
}

void pl_finding_pairs(const pl_finding *f)
{
    for (size_t i = 0; i < f->flags.count; i++)
        compare_words(f, f->flags.names[i]);
}

/* --- waiting ---------------------------------------------------------- */

/* Share of their time that the workers of a run waited; NAN: not known, or only
 * one worker. */
static double waiting_of(const pl_record *record)
{
    const pl_summary *s = &record->summary;
    double sum = 0;
    size_t count = 0;
    for (size_t i = 0; record->ended && i < s->worker_count; i++)
        if (isfinite(s->per_worker[i].waiting_share)) {
            sum += s->per_worker[i].waiting_share;
            count++;
        }
    return count > 1 ? sum / (double)count : (double)NAN;
}

static void put_waiting(const pl_finding *f, const range *r, const char *mode)
{
    pl_buffer_format(f->out, " %.0f ", 100 * r->least);
    if (r->largest - r->least >= 0.005)
        pl_buffer_format(f->out, "to %.0f ", 100 * r->largest);
    pl_buffer_format(f->out, "%% of the time in %s", mode);
}

void pl_finding_waiting(const pl_finding *f)
{
    const pl_records *r = f->records;
    range sync = empty_range(), async = empty_range();
    for (size_t i = 0; i < r->count; i++) {
        size_t other = find_partner(f, i, "mode", "sync", "async");
        if (other == r->count)
            continue;
        double own = waiting_of(&r->list[i]);
        double its = waiting_of(&r->list[other]);
        if (isnan(own) || isnan(its))
            continue;
        put_into(&sync, own);
        put_into(&async, its);
    }
    if (sync.pairs == 0)
        return;
    pl_buffer_text(f->out, "Workers wait");
    put_waiting(f, &sync, "sync");
    pl_buffer_text(f->out, " and");
    put_waiting(f, &async, "async");
    pl_buffer_text(f->out, ", all else equal.\n");
}

/* --- traffic ---------------------------------------------------------- */

/* Three significant digits without exponent: "3.1", "48700". */
static void put_rounded(const pl_finding *f, double value)
{
    if (value < 999.5) {
        pl_buffer_format(f->out, "%.3g", value);
        return;
    }
    double unit = pow(10, floor(log10(value)) - 2);
    pl_buffer_format(f->out, "%.0f", unit * round(value / unit));
}

/* "3.1", or a range "3.1 to 4.0" */
static void put_times(const pl_finding *f, const range *r)
{
    put_rounded(f, r->least);
    if (r->largest > 1.01 * r->least) {
        pl_buffer_text(f->out, " to ");
        put_rounded(f, r->largest);
    }
}

static double bytes_of(const pl_finding *f, size_t run)
{
    return point_of(f, run, "bytes_sent").y +
           point_of(f, run, "bytes_received").y;
}

/* If both were tried. */
static bool compare_traffic(const pl_finding *f)
{
    const pl_records *r = f->records;
    range speed = empty_range(), bytes = empty_range();
    for (size_t i = 0; i < r->count; i++) {
        size_t dense = find_partner(f, i, "traffic", "sparse", "dense");
        if (dense == r->count)
            continue;
        pl_line_point fast = point_of(f, i, "examples_per_s");
        pl_line_point slow = point_of(f, dense, "examples_per_s");
        double moved = bytes_of(f, i), all = bytes_of(f, dense);
        if (!(fast.y > 0 && slow.y > 0 && moved > 0 && all > 0))
            continue;
        put_into(&speed, fast.y / slow.y);
        speed.within += pl_line_within_spread(&fast, &slow);
        put_into(&bytes, all / moved);
    }
    if (speed.pairs == 0)
        return false;
    pl_buffer_text(f->out, "Dense traffic moves ");
    put_times(f, &bytes);
    pl_buffer_text(f->out, " times the bytes of sparse traffic, which makes ");
    put_times(f, &speed);
    pl_buffer_text(f->out, " times the examples/s, all else equal");
    if (speed.within > 0)
        pl_buffer_format(f->out, " (%zu of %zu within the spread)",
                         speed.within, speed.pairs);
    pl_buffer_text(f->out, ".\n");
    return true;
}

void pl_finding_traffic(const pl_finding *f)
{
    const pl_records *r = f->records;
    range dense = empty_range(), seconds = empty_range();
    if (compare_traffic(f))
        return;
    for (size_t i = 0; i < r->count; i++) {
        const pl_summary *s = &r->list[i].summary;
        if (!r->list[i].ended || !s->has_dense_traffic ||
            s->dense_traffic.moved_per_gradient <= 0)
            continue;
        put_into(&dense, (double)s->dense_traffic.bytes_per_gradient /
                             (double)s->dense_traffic.moved_per_gradient);
        if (isfinite(s->dense_traffic.seconds_per_gradient))
            put_into(&seconds, s->dense_traffic.seconds_per_gradient);
    }
    if (dense.pairs == 0)
        return;
    pl_buffer_text(f->out, "Dense traffic would have moved ");
    put_times(f, &dense);
    pl_buffer_text(f->out, " times the bytes");
    if (seconds.pairs == dense.pairs) {
        pl_buffer_text(f->out, ", ");
        put_times(f, &seconds);
        pl_buffer_text(f->out, " s for each gradient on the link of the run");
    }
    pl_buffer_text(f->out, ".\n");
}
