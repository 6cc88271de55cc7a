/* line.c - groups runs into lines: runs whose labels agree without the flag
 * share a line. */
#include "observe/findings/line.h"

#include "base/mem.h"
#include "observe/compare/compare.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool number_of(const char *text, double *out)
{
    char *end;
    *out = strtod(text, &end);
    return text[0] != '\0' && *end == '\0' && isfinite(*out);
}

static bool is_numeric(const pl_records *records, const char *flag)
{
    double value;
    for (size_t i = 0; i < records->count; i++)
        if (!number_of(pl_record_arg(&records->list[i], flag), &value))
            return false;
    return true;
}

static int by_x(const void *a, const void *b)
{
    double left = ((const pl_line_point *)a)->x;
    double right = ((const pl_line_point *)b)->x;
    return (left > right) - (left < right);
}

static pl_line *find_line(pl_lines *lines, const char *label)
{
    for (size_t i = 0; i < lines->count; i++)
        if (strcmp(lines->list[i].label, label) == 0)
            return &lines->list[i];
    return NULL;
}

static pl_status add_point(pl_lines *lines, const char *label, size_t room,
                           const pl_line_point *point)
{
    pl_line *line = find_line(lines, label);
    if (line == NULL) {
        line = &lines->list[lines->count];
        PL_TRY(PL_NEW(line->points, room));
        memcpy(line->label, label, sizeof line->label);
        lines->count++;
    }
    line->points[line->count++] = *point;
    return PL_OK;
}

static bool is_same(const char *a, const char *b)
{
    return strcmp(a != NULL ? a : "", b != NULL ? b : "") == 0;
}

/* For example several workers, with and without servers: more differs than
 * their number. */
static bool is_mixed(const pl_records *records, const pl_line *line)
{
    const pl_summary *first = NULL;
    for (size_t i = 0; i < line->count; i++) {
        const pl_record *record = &records->list[line->points[i].run];
        const pl_summary *s = &record->summary;
        if (!record->ended || s->workers < 2)
            continue;
        first = first != NULL ? first : s;
        if (!is_same(first->strategy, s->strategy) ||
            !is_same(first->mode, s->mode))
            return true;
    }
    return false;
}

/* Drop lines of one point, and lines whose runs have different strategies that
 * no flag of the label shows. */
static void finish(pl_lines *lines, const pl_records *records)
{
    size_t kept = 0;
    for (size_t i = 0; i < lines->count; i++) {
        pl_line *line = &lines->list[i];
        if (line->count < 2 || is_mixed(records, line)) {
            pl_mem_free(line->points);
            continue;
        }
        qsort(line->points, line->count, sizeof *line->points, by_x);
        lines->list[kept++] = *line;
    }
    lines->count = kept;
}

pl_status pl_lines_init(pl_lines *lines, const pl_records *records,
                        const pl_line_flags *flags, const char *flag,
                        const char *result)
{
    *lines = (pl_lines) { 0 };
    if (!is_numeric(records, flag))
        return PL_OK;
    PL_TRY(PL_NEW(lines->list, records->count + 1));
    for (size_t i = 0; i < records->count; i++) {
        char label[PL_LINE_LABEL_BYTES] = "";
        pl_line_point point = { .run = i };
        if (pl_records_first_like(records, i) != i ||
            !number_of(pl_record_arg(&records->list[i], flag), &point.x))
            continue;
        point.y = pl_compare_mean(records, i, result, &point.spread);
        if (isnan(point.y))
            continue;
        pl_compare_label(records, i, flags->names, flags->count, flag, label,
                         sizeof label);
        pl_status status = add_point(lines, label, records->count, &point);
        if (status != PL_OK) {
            pl_lines_close(lines);
            return status;
        }
    }
    finish(lines, records);
    return PL_OK;
}

void pl_lines_close(pl_lines *lines)
{
    for (size_t i = 0; i < lines->count; i++)
        pl_mem_free(lines->list[i].points);
    pl_mem_free(lines->list);
    *lines = (pl_lines) { 0 };
}

bool pl_line_within_spread(const pl_line_point *a, const pl_line_point *b)
{
    double spread = hypot(a->spread, b->spread);
    return spread > 0 && fabs(a->y - b->y) <= spread;
}
