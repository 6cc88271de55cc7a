/* table.h - rows of figures, as a Markdown table or as lines of JSON.
 *
 * Rows are written cell by cell; the names given with the cells of the first
 * row become the table's head.  In JSON the part's name and all cells make one
 * object; names are in lower case with underscores.
 *
 * Threads: one. */
#ifndef BENCH_TABLE_H
#define BENCH_TABLE_H

#include "measure.h"

#include <stdbool.h>
#include <stddef.h>

typedef struct table_line {
    char text[2048];
    size_t used;
} table_line;

typedef struct table {
    bool json;
    const char *part;
    bool has_head; /* printed already */
    table_line head, rule, row;
} table;

/* "## title" and a paragraph; JSON: `part` goes into each line. */
void table_begin(table *t, const char *part, const char *title,
                 const char *note);
void table_end(table *t);

void table_text(table *t, const char *name, const char *text);
void table_count(table *t, const char *name, int64_t value);
/* With three significant digits or more. */
void table_number(table *t, const char *name, double value);
/* "median (least-most)" */
void table_measured(table *t, const char *name, measurement m);
/* "53 %"; nothing when the limit is not known (0). */
void table_share(table *t, const char *name, double value, double limit);
void table_empty(table *t, const char *name);
void table_row_end(table *t);

#endif
