/* targets.c - the rule about reaching a target by batch: how many steps and how
 * much time the runs took that ended by meeting it.  The effect of workers
 * differs between modes, and is in workers.c. */
#include "observe/findings/findings_priv.h"

#include <stdio.h>
#include <string.h>

/* Factor of the smallest: a result below it counts as unchanged. */
#define LEVEL 1.05

/* A result, and the phrases of its sentence. */
typedef struct measure {
    const char *result, *stays, *rises, *falls, *is, *least, *most, *unit;
} measure;

static const measure steps = {
    "steps", "stay", "rise", "fall", "are", "fewest", "most", "",
};
static const measure seconds = {
    "seconds", "stays", "rises", "falls", "is", "shortest", "longest", " s",
};

bool pl_finding_is_met(const pl_record *record)
{
    const char *by = pl_record_stopped_by(record);
    return strcmp(by, "stop_loss") == 0 || strcmp(by, "stop_accuracy") == 0;
}

static const char *value_of(const measure *m, const pl_line_point *p,
                            char text[48])
{
    int digits = m == &steps ? 0 : p->y < 0.1 ? 4 : 2;
    snprintf(text, 48, "%.*f%s", digits, p->y, m->unit);
    return text;
}

static bool is_monotone(const pl_line *line, double sign)
{
    for (size_t i = 1; i < line->count; i++)
        if (sign * (line->points[i].y - line->points[i - 1].y) < 0)
            return false;
    return true;
}

/* " fall from 9500 (batch 1) to 7100 (batch 200)" */
static void put_change(const pl_finding *f, const measure *m,
                       const pl_line *line)
{
    const pl_line_point *first = line->points, *low = first, *high = first;
    const pl_line_point *last = &line->points[line->count - 1];
    char one[48], other[48];
    for (const pl_line_point *p = first; p <= last; p++) {
        low = p->y < low->y ? p : low;
        high = p->y > high->y ? p : high;
    }
    bool within = pl_line_within_spread(low, high);
    if (within || high->y <= LEVEL * low->y)
        pl_buffer_format(
            f->out, " %s between %s and %s (batch %g to %g)%s", m->stays,
            value_of(m, low, one), value_of(m, high, other), first->x, last->x,
            within ? ", within the spread of the repetitions" : "");
    else if (is_monotone(line, 1) || is_monotone(line, -1))
        pl_buffer_format(f->out, " %s from %s (batch %g) to %s (batch %g)",
                         last->y > first->y ? m->rises : m->falls,
                         value_of(m, first, one), first->x,
                         value_of(m, last, other), last->x);
    else
        pl_buffer_format(f->out,
                         " %s %s at batch %g, %s, and %s at batch %g, %s",
                         m->is, m->least, low->x, value_of(m, low, one),
                         m->most, high->x, value_of(m, high, other));
}

/* Drop runs that did not meet the target. */
static void keep_met(const pl_finding *f, pl_line *line)
{
    size_t kept = 0;
    for (size_t i = 0; i < line->count; i++)
        if (pl_finding_is_met(&f->records->list[line->points[i].run]))
            line->points[kept++] = line->points[i];
    line->count = kept;
}

static pl_line *line_like(const pl_lines *lines, const char *label)
{
    for (size_t i = 0; i < lines->count; i++)
        if (strcmp(lines->list[i].label, label) == 0)
            return &lines->list[i];
    return NULL;
}

static void put_line(const pl_finding *f, pl_line *made, pl_line *took)
{
    keep_met(f, made);
    if (made->count < 2)
        return;
    pl_finding_subject(f, made, "steps to the target");
    put_change(f, &steps, made);
    if (took != NULL)
        keep_met(f, took);
    if (took != NULL && took->count > 1) {
        pl_buffer_text(f->out, "; the time");
        put_change(f, &seconds, took);
    }
    pl_buffer_text(f->out, ".\n");
}

pl_status pl_finding_targets(const pl_finding *f)
{
    pl_lines made, took;
    PL_TRY(pl_lines_init(&made, f->records, &f->flags, "batch", steps.result));
    pl_status status =
        pl_lines_init(&took, f->records, &f->flags, "batch", seconds.result);
    for (size_t i = 0;
         status == PL_OK && made.count <= PL_FINDING_LINES && i < made.count;
         i++)
        put_line(f, &made.list[i], line_like(&took, made.list[i].label));
    pl_lines_close(&made);
    pl_lines_close(&took);
    return status;
}
