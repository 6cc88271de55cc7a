/* csv.h - tables of numbers as text: one row per line, one example per row.
 *
 * One column is the label, all others are features.  A cell is a number, or
 * missing (empty, NA, NaN), or, in a column of categories, a text: one of the
 * label's classes, or a one-hot encoded feature.  Cells may be quoted (RFC
 * 4180), on one line.  Several files, also gzip or zstd, are read as one table.
 *
 * Threads: any; a pl_csv_table may be read by all once made. */
#ifndef PL_DATA_CSV_CSV_H
#define PL_DATA_CSV_CSV_H

#include "data/sparse/files.h"

typedef enum pl_csv_role {
    PL_CSV_NUMBER,
    PL_CSV_CATEGORY,
    PL_CSV_LABEL,
    PL_CSV_LABEL_CLASS, /* a label that is a text */
    PL_CSV_IGNORED,
} pl_csv_role;

typedef struct pl_csv_column {
    char *name; /* from the header, otherwise its number from 1 */
    pl_csv_role role;
    int64_t at;    /* of its first feature in an example */
    char **values; /* categories, sorted */
    size_t value_count, value_room;
} pl_csv_column;

typedef struct pl_csv_table {
    const char *path; /* of the first file */
    char delimiter;
    bool header;
    pl_csv_column *columns;
    size_t column_count;
    int64_t label;    /* column; -1: none */
    bool numeric;     /* labels are numbers, not classes */
    int64_t features; /* of an example */
} pl_csv_table;

/* Detect delimiter, header and columns from the first lines, in `text`, ended
 * by '\n' and followed by PL_TEXT_PAD bytes. */
pl_status pl_csv_table_init(pl_csv_table *table, const char *path,
                            const char *text, const char *end,
                            const pl_source_opts *opts) PL_MUST_CHECK;
void pl_csv_table_close(pl_csv_table *table); /* a zeroed one is fine */

/* Place the features of all columns, once the values of categories are
 * known. */
void pl_csv_place_columns(pl_csv_table *table);

/* Look a category up: its index, or -1. */
int64_t pl_csv_value(const pl_csv_column *column, const char *text);
/* Add a new value. */
pl_status pl_csv_add_value(pl_csv_column *column,
                           const char *text) PL_MUST_CHECK;

/* A cell, without its quotes; ended by a NUL in place. */
typedef struct pl_csv_cell {
    char *text;
    bool quoted;
} pl_csv_cell;

/* Take the next cell of a line; *at moves past it and its delimiter; *last: the
 * line ends there ('\n' or "\r\n", which *at has passed).  PL_FORMAT when a
 * quote is not closed. */
pl_status pl_csv_take(char **at, char delimiter, pl_csv_cell *out,
                      bool *last) PL_MUST_CHECK;

/* A number or a missing one (NaN); false when it is neither. */
bool pl_csv_number(const char *text, double *out);

/* One row in place of `features` and `label` (ignored where the table has
 * none), an int32_t, or a float where labels are numbers.  `*at` is the start
 * of a line that is not empty, and moves past it.  Errors name the column, not
 * the line.  `fill` replaces missing numbers; NaN: they are refused, unless
 * `missing` allows them. */
typedef struct pl_csv_fill {
    float value;
    bool missing;
} pl_csv_fill;
pl_status pl_csv_row(const pl_csv_table *table, char **at,
                     const pl_csv_fill *fill, float *features,
                     void *label) PL_MUST_CHECK;

/* "csv:FILE" */
pl_status pl_csv_open(pl_dataset **out, const char *place, pl_split split,
                      const pl_source_opts *opts) PL_MUST_CHECK;
/* The same for bytes in memory, which must stay valid: for tests. */
pl_status pl_csv_open_memory(pl_dataset **out, const uint8_t *data,
                             size_t bytes,
                             const pl_source_opts *opts) PL_MUST_CHECK;

#endif
