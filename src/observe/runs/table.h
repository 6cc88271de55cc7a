/* table.h - a table of results: for the terminal, as CSV, as JSON, as HTML.
 *
 * A column has a key for programs and a label with a unit for people; a unit
 * "%" or "points" shows fractions as percent.  A cell is a text, a number, a
 * mean with its spread, or empty.  CSV and JSON have every digit, and the
 * spread as a separate <key>_spread.  Columns of a group may share keys with
 * others: a prefix distinguishes them.
 *
 * If memory runs out, that is remembered; see pl_table_status.
 *
 * Threads: one at a time. */
#ifndef PL_OBSERVE_RUNS_TABLE_H
#define PL_OBSERVE_RUNS_TABLE_H

#include "base/buffer.h"
#include "base/json/json.h"

typedef struct pl_table pl_table;

typedef struct pl_table_column {
    const char *key;   /* required: "test_accuracy" */
    const char *label; /* NULL: the key */
    const char *unit;  /* "s", "%"; NULL: none */
    int digits;        /* after the point; -1: six significant digits */
    bool spread;       /* cells are means */
} pl_table_column;

/* `name` is for its file, `title` is shown above it. */
pl_status pl_table_new(pl_table **out, const char *name,
                       const char *title) PL_MUST_CHECK;
void pl_table_free(pl_table *table); /* NULL is fine */
pl_status pl_table_status(const pl_table *table) PL_MUST_CHECK;

/* A kind of columns; static. */
typedef struct pl_table_group {
    const char *prefix; /* of the keys in CSV and JSON: "flag." */
    bool typed; /* JSON: a text that is a number, true or false becomes one; an
                   empty text becomes null */
} pl_table_group;

/* Columns added from now on belong to the group, which may already have some;
 * NULL: to none. */
void pl_table_set_group(pl_table *table, const pl_table_group *group);

/* Columns must be added before rows; texts are copied. */
void pl_table_add_column(pl_table *table, const pl_table_column *given);
/* In text and HTML, positive numbers in the last column have a sign. */
void pl_table_show_sign(pl_table *table);
void pl_table_add_row(pl_table *table);

/* Set the next cell of the last row.  Numbers that are not finite leave it
 * empty. */
void pl_table_put_text(pl_table *table, const char *text);
void pl_table_put_number(pl_table *table, double value);
void pl_table_put_mean(pl_table *table, double mean, double spread);

/* Replace the name and title. */
pl_status pl_table_rename(pl_table *table, const char *name,
                          const char *title) PL_MUST_CHECK;
const char *pl_table_name(const pl_table *table);
size_t pl_table_rows(const pl_table *table);

/* Append the table to `out`. */
void pl_table_print(const pl_table *table, pl_buffer *out);
/* The same in lines of at most `width` characters, if a column fits: the
 * remaining columns follow in further blocks, each after the first column.  0:
 * any width. */
void pl_table_print_within(const pl_table *table, size_t width, pl_buffer *out);
void pl_table_csv(const pl_table *table, pl_buffer *out);
void pl_table_html(const pl_table *table, pl_buffer *out);
/* One object per row, with the names used in CSV. */
pl_status pl_table_json(const pl_table *table, pl_json **out) PL_MUST_CHECK;

#endif
