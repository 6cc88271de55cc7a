/* table.h - a table of results: for the terminal, as CSV, as JSON, as HTML.
 *
 * A column has a key for programs and a label with a unit for people; a unit
 * "%" or "points" shows fractions as percent.  A cell is a text, a number, a
 * mean with its spread, or nothing.  CSV and JSON have every digit and give a
 * spread a name of its own, <key>_spread.  Columns of a group may have the keys
 * of others: a prefix tells them apart.
 *
 * What fails for want of memory is remembered, and pl_table_status tells.
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
    int digits;        /* behind the point; -1: six that count */
    bool spread;       /* cells are means */
} pl_table_column;

/* `name` is that of its file, `title` stands above it. */
pl_status pl_table_new(pl_table **out, const char *name,
                       const char *title) PL_MUST_CHECK;
void pl_table_free(pl_table *table); /* NULL is fine */
pl_status pl_table_status(const pl_table *table) PL_MUST_CHECK;

/* Columns of one kind; static. */
typedef struct pl_table_group {
    const char *prefix; /* of the keys in CSV and JSON: "flag." */
    bool typed; /* JSON: a text that is a number, true or false becomes one, an
                   empty one null */
} pl_table_group;

/* The columns that are added from here on belong to the group, which may have
 * some already; NULL: to none. */
void pl_table_set_group(pl_table *table, const pl_table_group *group);

/* Columns come before rows; texts are copied. */
void pl_table_add_column(pl_table *table, const pl_table_column *given);
/* People see the sign also of positive numbers in the last column. */
void pl_table_show_sign(pl_table *table);
void pl_table_add_row(pl_table *table);

/* The next cell of the last row.  A number that is not finite is nothing. */
void pl_table_put_text(pl_table *table, const char *text);
void pl_table_put_number(pl_table *table, double value);
void pl_table_put_mean(pl_table *table, double mean, double spread);

/* Other ones than at its making. */
pl_status pl_table_rename(pl_table *table, const char *name,
                          const char *title) PL_MUST_CHECK;
const char *pl_table_name(const pl_table *table);
size_t pl_table_rows(const pl_table *table);

/* Append the table to `out`. */
void pl_table_print(const pl_table *table, pl_buffer *out);
/* The same in lines of at most `width` characters, where a column fits: the
 * columns that do not stand below, behind the first one.  0: any width. */
void pl_table_print_within(const pl_table *table, size_t width, pl_buffer *out);
void pl_table_csv(const pl_table *table, pl_buffer *out);
void pl_table_html(const pl_table *table, pl_buffer *out);
/* One object a row, with the names of CSV. */
pl_status pl_table_json(const pl_table *table, pl_json **out) PL_MUST_CHECK;

#endif
