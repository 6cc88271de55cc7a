/* growth.c - rules about growth with a flag: examples/s with the batch, up to
 * the batch at which a machine is saturated, and the memory of the largest task
 * with batch and workers. */
#include "observe/findings/findings_priv.h"

#include "observe/compare/compare.h"

#include <math.h>

/* Share of the largest speed: the gain beyond it is not worth a larger
 * batch. */
#define SATURATED 0.95
/* Factor in memory: less is not worth a sentence. */
#define GROWN 1.2

/* --- examples/s ------------------------------------------------------- */

static double fastest_of(const pl_line *line)
{
    double most = 0;
    for (size_t i = 0; i < line->count; i++)
        most = fmax(most, line->points[i].y);
    return most;
}

/* The first point that is almost as fast as the fastest. */
static const pl_line_point *knee_of(const pl_line *line)
{
    double most = fastest_of(line);
    size_t at = 0;
    while (line->points[at].y < SATURATED * most)
        at++;
    return &line->points[at];
}

static void put_saturation(const pl_finding *f, const pl_line *line)
{
    const pl_line_point *first = line->points, *knee = knee_of(line);
    const pl_line_point *last = &line->points[line->count - 1];
    bool falls = last->y < SATURATED * fastest_of(line) &&
                 !pl_line_within_spread(knee, last);
    pl_finding_subject(f, line, "examples/s");
    if (knee == first || pl_line_within_spread(first, knee)) {
        pl_buffer_format(f->out,
                         " do not grow with the batch (%.0f at batch %g, %.0f "
                         "at batch %g).\n",
                         first->y, first->x, last->y, last->x);
        return;
    }
    pl_buffer_format(f->out, " grow from %.0f (batch %g) to %.0f (batch %g)",
                     first->y, first->x, knee->y, knee->x);
    if (falls)
        pl_buffer_format(f->out, ", and fall to %.0f (batch %g)", last->y,
                         last->x);
    else if (knee != last)
        pl_buffer_text(f->out, ", and hardly beyond");
    pl_buffer_text(f->out, ".\n");
}

pl_status pl_finding_saturation(const pl_finding *f)
{
    pl_lines lines;
    PL_TRY(pl_lines_init(&lines, f->records, &f->flags, "batch",
                         "examples_per_s"));
    for (size_t i = 0; lines.count <= PL_FINDING_LINES && i < lines.count; i++)
        if (lines.list[i].points[0].y > 0)
            put_saturation(f, &lines.list[i]);
    pl_lines_close(&lines);
    return PL_OK;
}

/* --- memory ----------------------------------------------------------- */

static void put_memory(const pl_finding *f, const pl_line *line,
                       const char *flag)
{
    const pl_line_point *first = line->points;
    const pl_line_point *last = &line->points[line->count - 1];
    double low = fmin(first->y, last->y), high = fmax(first->y, last->y);
    if (!(low > 0) || high < GROWN * low || pl_line_within_spread(first, last))
        return;
    pl_finding_subject(f, line, "peak memory of the largest task");
    pl_buffer_format(f->out, " %s from %.0f MB (%s %g) to %.0f MB (%s %g).\n",
                     last->y > first->y ? "grows" : "falls", first->y, flag,
                     first->x, last->y, flag, last->x);
}

static pl_status find_memory(const pl_finding *f, const char *flag)
{
    pl_lines lines;
    PL_TRY(pl_lines_init(&lines, f->records, &f->flags, flag, "peak_rss_mb"));
    for (size_t i = 0; lines.count <= PL_FINDING_LINES && i < lines.count; i++)
        put_memory(f, &lines.list[i], flag);
    pl_lines_close(&lines);
    return PL_OK;
}

pl_status pl_finding_memory(const pl_finding *f)
{
    PL_TRY(find_memory(f, "batch"));
    return find_memory(f, "workers");
}
