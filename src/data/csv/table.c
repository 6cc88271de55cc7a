/* table.c - decides what the columns of a table are: from its first two lines,
 * the options and, for categories, the training data. */
#include "data/csv/csv.h"

#include "base/mem.h"
#include "data/sparse/formats/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_COLUMNS 1000000
#define MOST_VALUES  65536

void pl_csv_table_close(pl_csv_table *table)
{
    for (size_t c = 0; c < table->column_count; c++) {
        pl_csv_column *column = &table->columns[c];
        for (size_t v = 0; v < column->value_count; v++)
            pl_mem_free(column->values[v]);
        pl_mem_free(column->values);
        pl_mem_free(column->name);
    }
    pl_mem_free(table->columns);
    *table = (pl_csv_table) { .path = NULL };
}

/* The most frequent of the usual delimiters in the first line. */
static char find_delimiter(const char *line)
{
    static const char usual[] = ",;\t|";
    char best = ',';
    int64_t most = 0;
    for (const char *d = usual; *d != '\0'; d++) {
        int64_t count = 0;
        for (const char *at = line; *at != '\n'; at++)
            count += *at == *d;
        if (count > most) {
            most = count;
            best = *d;
        }
    }
    return best;
}

static pl_status choose_delimiter(pl_csv_table *table, const char *line,
                                  const char *given)
{
    table->delimiter = find_delimiter(line);
    if (given == NULL)
        return PL_OK;
    if (strcmp(given, "tab") == 0 || strcmp(given, "\\t") == 0)
        given = "\t";
    if (strlen(given) != 1 || strchr("\"\n\r.+-0123456789", given[0]) != NULL)
        return PL_FAIL(PL_USAGE,
                       "--delimiter \"%s\": expected one character that is "
                       "not part of numbers, or tab",
                       given);
    table->delimiter = given[0];
    return PL_OK;
}

/* The cells of a line, in a copy of it. */
typedef struct line {
    char *copy;
    pl_csv_cell *cells;
    size_t count, room;
} line;

static void close_line(line *l)
{
    pl_mem_free(l->copy);
    pl_mem_free(l->cells);
}

static pl_status cut_line(line *l, const char *text, char delimiter)
{
    size_t bytes = (size_t)(pl_text_line_end(text) - text) + 1;
    bool last = false;
    PL_TRY(PL_NEW(l->copy, bytes + PL_TEXT_PAD));
    memcpy(l->copy, text, bytes);
    for (char *at = l->copy; !last; l->count++) {
        if (l->count == MOST_COLUMNS)
            return PL_FAIL(PL_UNSUPPORTED, "more than %d columns",
                           MOST_COLUMNS);
        PL_TRY(PL_GROW(l->cells, l->count, l->room));
        PL_TRY(pl_csv_take(&at, delimiter, &l->cells[l->count], &last));
    }
    return PL_OK;
}

static bool is_number(const line *l, size_t c)
{
    double value;
    return l->cells[c].text[0] != '\0' &&
           pl_csv_number(l->cells[c].text, &value);
}

/* A first line is a header when it has a text where the second has a number,
 * or no number at all. */
static bool looks_like_header(const line *first, const line *second)
{
    bool any_number = false;
    for (size_t c = 0; c < first->count; c++) {
        bool number = is_number(first, c);
        any_number |= number;
        if (!number && first->cells[c].text[0] != '\0' && c < second->count &&
            is_number(second, c))
            return true;
    }
    return !any_number;
}

static pl_status name_columns(pl_csv_table *table, const line *first)
{
    PL_TRY(PL_NEW(table->columns, first->count));
    table->column_count = first->count;
    for (size_t c = 0; c < first->count; c++) {
        char **name = &table->columns[c].name;
        if (table->header && first->cells[c].text[0] != '\0')
            PL_TRY(pl_mem_copy_text(name, first->cells[c].text));
        else
            PL_TRY(pl_mem_format(name, "%zu", c + 1));
    }
    return PL_OK;
}

/* A column by its name, or by its number from 1; -1: none. */
static int64_t find_column(const pl_csv_table *table, const char *name,
                           size_t bytes)
{
    for (size_t c = 0; c < table->column_count; c++)
        if (strlen(table->columns[c].name) == bytes &&
            memcmp(table->columns[c].name, name, bytes) == 0)
            return (int64_t)c;
    char *end;
    long long number = strtoll(name, &end, 10);
    if (end != name + bytes || number < 1 ||
        (unsigned long long)number > table->column_count)
        return -1;
    return number - 1;
}

static pl_status no_column(const pl_csv_table *table, const char *flag,
                           const char *name, size_t bytes)
{
    return PL_FAIL(PL_USAGE,
                   "--%s %.*s: %s has %zu columns, none of that name; the "
                   "first is %s, the last %s",
                   flag, (int)bytes, name, table->path, table->column_count,
                   table->columns[0].name,
                   table->columns[table->column_count - 1].name);
}

/* The usual names of a label, when none is given. */
static int64_t guess_label(const pl_csv_table *table)
{
    static const char *const usual[] = { "label", "class", "target", "y" };
    for (size_t i = 0; table->header && i < sizeof usual / sizeof *usual; i++)
        for (size_t c = 0; c < table->column_count; c++)
            if (strcmp(table->columns[c].name, usual[i]) == 0)
                return (int64_t)c;
    return -1;
}

/* Rows for prediction need no label: a table with exactly the features has
 * none. */
static bool has_no_label(const pl_csv_table *table, const pl_source_opts *opts)
{
    return opts->unlabelled && opts->shape.rank == 1 &&
           opts->shape.dim[0] == (int64_t)table->column_count;
}

static pl_status choose_label(pl_csv_table *table, const pl_source_opts *opts)
{
    const char *name = opts->label_column;
    table->label = -1;
    if (name == NULL) {
        table->label = guess_label(table);
        if (table->label < 0 && !opts->unlabelled)
            return PL_FAIL(PL_USAGE,
                           "%s: none of its %zu columns is called label, "
                           "class, target or y; give --label-column NAME, or "
                           "its number from 1",
                           table->path, table->column_count);
    } else if (table->header || !has_no_label(table, opts)) {
        table->label = find_column(table, name, strlen(name));
        if (table->label < 0 && !opts->unlabelled)
            return no_column(table, "label-column", name, strlen(name));
    }
    table->numeric = opts->numeric;
    if (table->label >= 0)
        table->columns[table->label].role = PL_CSV_LABEL;
    return PL_OK;
}

/* Give the columns of the list "a,b" a role. */
static pl_status mark(pl_csv_table *table, const char *flag, const char *list,
                      bool must_be_there, pl_csv_role role)
{
    while (list != NULL && *list != '\0') {
        size_t bytes = strcspn(list, ",");
        int64_t at = find_column(table, list, bytes);
        if (at < 0 && must_be_there)
            return no_column(table, flag, list, bytes);
        if (at >= 0) {
            pl_csv_column *column = &table->columns[at];
            bool label = column->role == PL_CSV_LABEL;
            if (label && role == PL_CSV_CATEGORY && table->numeric)
                return PL_FAIL(PL_USAGE,
                               "--categories %s: that column is the label, "
                               "which is a number with this --loss",
                               column->name);
            column->role =
                label && role == PL_CSV_CATEGORY ? PL_CSV_LABEL_CLASS : role;
        }
        list += bytes + (list[bytes] == ',');
    }
    return PL_OK;
}

void pl_csv_place_columns(pl_csv_table *table)
{
    table->features = 0;
    for (size_t c = 0; c < table->column_count; c++) {
        pl_csv_column *column = &table->columns[c];
        column->at = table->features;
        if (column->role == PL_CSV_NUMBER)
            table->features++;
        else if (column->role == PL_CSV_CATEGORY)
            table->features += (int64_t)column->value_count;
    }
}

static pl_status find_header(pl_csv_table *table, const line *first,
                             const char *text, const char *end,
                             const pl_source_opts *opts)
{
    const char *next = pl_text_line_end(text) + 1;
    line second = { .copy = NULL };
    if (opts->header != PL_HEADER_AUTO) {
        table->header = opts->header == PL_HEADER_YES;
        return PL_OK;
    }
    pl_status status =
        next < end ? cut_line(&second, next, table->delimiter) : PL_OK;
    if (status == PL_OK)
        table->header = looks_like_header(first, &second);
    close_line(&second);
    return status;
}

pl_status pl_csv_table_init(pl_csv_table *table, const char *path,
                            const char *text, const char *end,
                            const pl_source_opts *opts)
{
    line first = { .copy = NULL };
    *table = (pl_csv_table) { .path = path };
    pl_status status;
    PL_TRY_OUT(status, choose_delimiter(table, text, opts->delimiter));
    PL_TRY_OUT(status, cut_line(&first, text, table->delimiter));
    PL_TRY_OUT(status, find_header(table, &first, text, end, opts));
    PL_TRY_OUT(status, name_columns(table, &first));
    PL_TRY_OUT(status, choose_label(table, opts));
    PL_TRY_OUT(status, mark(table, "ignore-columns", opts->ignore_columns,
                            !opts->unlabelled, PL_CSV_IGNORED));
    PL_TRY_OUT(status, mark(table, "categories", opts->categories,
                            !opts->unlabelled, PL_CSV_CATEGORY));
    pl_csv_place_columns(table);
out:
    close_line(&first);
    if (status != PL_OK)
        pl_csv_table_close(table);
    return status;
}

/* The place of a value, or where it would be inserted. */
static size_t value_at(const pl_csv_column *column, const char *text,
                       bool *found)
{
    size_t low = 0, high = column->value_count;
    *found = false;
    while (low < high && !*found) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(text, column->values[middle]);
        *found = order == 0;
        if (order > 0)
            low = middle + 1;
        else
            high = middle;
    }
    return high;
}

int64_t pl_csv_value(const pl_csv_column *column, const char *text)
{
    bool found;
    size_t at = value_at(column, text, &found);
    return found ? (int64_t)at : -1;
}

pl_status pl_csv_add_value(pl_csv_column *column, const char *text)
{
    bool found;
    size_t at = value_at(column, text, &found);
    char *copy;
    if (found)
        return PL_OK;
    if (column->value_count == MOST_VALUES)
        return PL_FAIL(PL_UNSUPPORTED,
                       "column %s has more than %d values, too many for "
                       "categories; leave it out: --ignore-columns %s",
                       column->name, MOST_VALUES, column->name);
    PL_TRY(PL_GROW(column->values, column->value_count, column->value_room));
    PL_TRY(pl_mem_copy_text(&copy, text));
    memmove(column->values + at + 1, column->values + at,
            (column->value_count - at) * sizeof *column->values);
    column->values[at] = copy;
    column->value_count++;
    return PL_OK;
}
