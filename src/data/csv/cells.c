/* cells.c - splits lines into cells and reads rows: decides which texts are
 * numbers, which are missing, and which error the others are. */
#include "data/csv/csv.h"

#include "data/sparse/formats/text.h"

#include <math.h>
#include <string.h>
#include <strings.h>

static bool ends_line(const char *at)
{
    return *at == '\n' || (at[0] == '\r' && at[1] == '\n');
}

/* Skip the delimiter or the end of the line at `at`. */
static char *step_over(char *at, bool *last)
{
    *last = ends_line(at);
    return at + (*at == '\r' ? 2 : 1);
}

/* "" inside quotes is one quote; the rest moves down. */
static pl_status take_quoted(char **at, char delimiter, pl_csv_cell *out,
                             bool *last)
{
    char *from = *at + 1, *to = from;
    out->text = to;
    out->quoted = true;
    for (; *from != '\n'; from++) {
        if (*from == '"' && from[1] == '"')
            from++;
        else if (*from == '"')
            break;
        *to++ = *from;
    }
    if (*from == '\n')
        return PL_FAIL(PL_FORMAT, "a quote is not closed in its line");
    from++;
    if (*from != delimiter && !ends_line(from))
        return PL_FAIL(PL_FORMAT,
                       "'%c' after a closing quote, expected the "
                       "delimiter or the end of the line",
                       *from >= ' ' && *from <= '~' ? *from : '?');
    *at = step_over(from, last);
    *to = '\0';
    return PL_OK;
}

pl_status pl_csv_take(char **at, char delimiter, pl_csv_cell *out, bool *last)
{
    char *begin = *at, *end;
    while (*begin == ' ' && delimiter != ' ')
        begin++;
    if (*begin == '"') {
        *at = begin;
        return take_quoted(at, delimiter, out, last);
    }
    for (end = begin; *end != delimiter && !ends_line(end); end++)
        ;
    *out = (pl_csv_cell) { .text = begin };
    *at = step_over(end, last);
    while (end > begin && end[-1] == ' ')
        end--;
    *end = '\0';
    return PL_OK;
}

bool pl_csv_number(const char *text, double *out)
{
    static const char *const missing[] = { "", "na", "n/a", "nan", "null" };
    char copy[64 + PL_TEXT_PAD] = "";
    for (size_t i = 0; i < sizeof missing / sizeof *missing; i++)
        if (strcasecmp(text, missing[i]) == 0) {
            *out = (double)NAN;
            return true;
        }
    size_t bytes = strlen(text);
    if (bytes > 63)
        return false;
    memcpy(copy, text, bytes + 1);
    copy[bytes] = '\n';
    return pl_text_real(copy, out) == copy + bytes;
}

/* A row being parsed. */
typedef struct row {
    const pl_csv_table *table;
    const pl_csv_fill *fill;
    float *features;
    void *label; /* int32_t, or float where labels are numbers */
} row;

static pl_status not_a_number(const pl_csv_column *column, const char *text)
{
    return PL_FAIL(PL_FORMAT,
                   "column %s: \"%.40s\", expected a number; if the column is "
                   "text, encode it with --categories %s or skip it with "
                   "--ignore-columns %s",
                   column->name, text, column->name, column->name);
}

static pl_status put_number(const row *r, const pl_csv_column *column,
                            double value)
{
    float number = (float)value;
    if (isnan(value)) {
        if (isnan(r->fill->value) && !r->fill->missing)
            return PL_FAIL(PL_FORMAT,
                           "column %s: the number is missing; to replace "
                           "missing numbers: --fill-missing 0",
                           column->name);
        number = r->fill->value;
    }
    r->features[column->at] = number;
    return PL_OK;
}

static pl_status put_label(const row *r, const pl_csv_column *column,
                           const char *text)
{
    double value;
    if (!pl_csv_number(text, &value))
        return not_a_number(column, text);
    if (r->table->numeric) {
        if (isnan(value))
            return PL_FAIL(PL_FORMAT,
                           "column %s: the label is missing, expected a number",
                           column->name);
        *(float *)r->label = (float)value;
        return PL_OK;
    }
    if (!(value >= 0 && value < INT32_MAX) || value != floor(value))
        return PL_FAIL(PL_FORMAT,
                       "column %s: label \"%.40s\", expected the number of a "
                       "class, 0 or more; to make classes of other labels: "
                       "--categories %s; for numbers to predict: --loss "
                       "squared-error, or --labels numbers of data",
                       column->name, text, column->name);
    *(int32_t *)r->label = (int32_t)value;
    return PL_OK;
}

static pl_status put_category(const row *r, const pl_csv_column *column,
                              const char *text)
{
    int64_t value = pl_csv_value(column, text);
    if (value < 0)
        return PL_FAIL(PL_FORMAT,
                       "column %s: \"%.40s\" is not one of the %zu values of "
                       "the training data",
                       column->name, text, column->value_count);
    if (column->role == PL_CSV_LABEL_CLASS)
        *(int32_t *)r->label = (int32_t)value;
    else
        for (size_t i = 0; i < column->value_count; i++)
            r->features[column->at + (int64_t)i] = (int64_t)i == value;
    return PL_OK;
}

static pl_status put_cell(const row *r, const pl_csv_column *column,
                          const char *text)
{
    double value;
    switch (column->role) {
    case PL_CSV_NUMBER:
        return pl_csv_number(text, &value) ? put_number(r, column, value)
                                           : not_a_number(column, text);
    case PL_CSV_LABEL:
        return put_label(r, column, text);
    case PL_CSV_LABEL_CLASS:
    case PL_CSV_CATEGORY:
        return put_category(r, column, text);
    case PL_CSV_IGNORED:
        break;
    }
    return PL_OK;
}

/* The common case: a plain number that ends at the delimiter. */
static bool put_plain(const row *r, const pl_csv_column *column, char **at,
                      char delimiter, bool *last)
{
    double value;
    if (column->role != PL_CSV_NUMBER)
        return false;
    const char *end = pl_text_real(*at, &value);
    if (end == NULL || end == *at || (*end != delimiter && !ends_line(end)))
        return false;
    r->features[column->at] = (float)value;
    *at = step_over(*at + (end - *at), last);
    return true;
}

pl_status pl_csv_row(const pl_csv_table *table, char **at,
                     const pl_csv_fill *fill, float *features, void *label)
{
    const row r = { table, fill, features, label };
    bool last = false;
    for (size_t c = 0; c < table->column_count; c++) {
        if (last)
            return PL_FAIL(PL_FORMAT, "%zu cells, expected %zu", c,
                           table->column_count);
        pl_csv_cell cell;
        if (put_plain(&r, &table->columns[c], at, table->delimiter, &last))
            continue;
        PL_TRY(pl_csv_take(at, table->delimiter, &cell, &last));
        PL_TRY(put_cell(&r, &table->columns[c], cell.text));
    }
    return last
               ? PL_OK
               : PL_FAIL(PL_FORMAT, "more than %zu cells", table->column_count);
}
