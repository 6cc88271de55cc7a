/* resources_read.c - reads resources/<host>.csv into curves named after the
 * columns. */
#include "observe/runs/curve_read.h"

#include "base/mem.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define COLUMNS_MOST 2048
#define FIELD_BYTES  64

typedef struct span {
    const char *at, *end;
} span;

/* Cut off the text before `mark`; false: no mark. */
static bool cut(span *from, char mark, span *out)
{
    const char *found = memchr(from->at, mark, (size_t)(from->end - from->at));
    if (found == NULL)
        return false;
    *out = (span) { from->at, found };
    from->at = found + 1;
    return true;
}

static span next_field(span *line)
{
    span field;
    if (!cut(line, ',', &field)) {
        field = *line;
        line->at = line->end;
    }
    return field;
}

/* NAN if empty or not a number. */
static double number_of(span field)
{
    char text[FIELD_BYTES], *end;
    size_t bytes = (size_t)(field.end - field.at);
    if (bytes == 0 || bytes >= sizeof text)
        return NAN;
    memcpy(text, field.at, bytes);
    text[bytes] = '\0';
    double value = strtod(text, &end);
    return *end == '\0' ? value : NAN;
}

typedef struct reader {
    pl_curves *curves;
    span *names;
    size_t count;
    double begin; /* NAN: no line yet */
} reader;

static pl_status read_header(reader *r, span line, const char *what)
{
    while (line.at < line.end) {
        if (r->count == COLUMNS_MOST)
            return PL_FAIL(PL_FORMAT, "%s: more than %d columns", what,
                           COLUMNS_MOST);
        r->names[r->count++] = next_field(&line);
    }
    static const char first[] = "time";
    if (r->count == 0 || r->names[0].end - r->names[0].at != 4 ||
        memcmp(r->names[0].at, first, 4) != 0)
        return PL_FAIL(PL_FORMAT,
                       "%s: the first column is not \"time\"; not a table of "
                       "resources",
                       what);
    return PL_OK;
}

static pl_status read_line(reader *r, span line)
{
    double time = number_of(next_field(&line));
    if (!isfinite(time))
        return PL_FAIL(PL_FORMAT, "expected a time in seconds");
    if (isnan(r->begin))
        r->begin = time;
    for (size_t i = 1; i < r->count; i++) {
        double value = number_of(next_field(&line));
        if (!isfinite(value))
            continue;
        PL_TRY(pl_curves_add(r->curves, r->names[i].at,
                             (size_t)(r->names[i].end - r->names[i].at),
                             (pl_point) { time - r->begin, value, time }));
    }
    return PL_OK;
}

pl_status pl_resources_read(pl_curves *curves, const char *text, size_t bytes,
                            const char *what)
{
    if (bytes == 0) /* then `text` may be NULL */
        return PL_FAIL(PL_FORMAT, "%s: no header line", what);
    reader r = { .curves = curves, .begin = NAN };
    span rest = { text, text + bytes }, line;
    PL_TRY(PL_NEW(r.names, COLUMNS_MOST));
    pl_status status = cut(&rest, '\n', &line)
                           ? read_header(&r, line, what)
                           : PL_FAIL(PL_FORMAT, "%s: no header line", what);
    for (int number = 2; status == PL_OK && cut(&rest, '\n', &line); number++) {
        status = read_line(&r, line);
        if (status == PL_FORMAT)
            status = pl_context(status, "%s:%d", what, number);
    }
    pl_mem_free(r.names);
    return status;
}
