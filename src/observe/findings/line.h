/* line.h - runs that differ in one flag only, in the order of its values.
 *
 * Threads: any. */
#ifndef PL_OBSERVE_FINDINGS_LINE_H
#define PL_OBSERVE_FINDINGS_LINE_H

#include "observe/runs/record.h"

#define PL_LINE_LABEL_BYTES 192
#define PL_LINE_FLAGS_MOST  32

/* The flags that distinguish runs. */
typedef struct pl_line_flags {
    const char *names[PL_LINE_FLAGS_MOST];
    size_t count;
} pl_line_flags;

/* One value of the flag, and the mean of a result over the repetitions. */
typedef struct pl_line_point {
    double x, y, spread; /* spread 0: not repeated */
    size_t run;
} pl_line_point;

typedef struct pl_line {
    char label[PL_LINE_LABEL_BYTES]; /* "mode sync, batch 10" */
    pl_line_point *points;           /* sorted by x */
    size_t count;
} pl_line;

typedef struct pl_lines {
    pl_line *list; /* each has at least two points */
    size_t count;
} pl_lines;

/* All lines of a result over a flag; none if a value of the flag is not a
 * number. */
pl_status pl_lines_init(pl_lines *lines, const pl_records *records,
                        const pl_line_flags *flags, const char *flag,
                        const char *result) PL_MUST_CHECK;
void pl_lines_close(pl_lines *lines); /* a zeroed one is fine */

/* Is the difference of the two within the spread of their repetitions? */
bool pl_line_within_spread(const pl_line_point *a, const pl_line_point *b);

#endif
