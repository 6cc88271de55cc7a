/* table.c - a table of results and its four forms: aligned text, CSV, JSON and
 * HTML. */
#include "observe/runs/table.h"

#include "base/assert.h"
#include "base/mem.h"
#include "base/text/quote.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NUMBER_BYTES 64
#define LABEL_BYTES  96

typedef struct column {
    char *key, *label, *unit;
    const pl_table_group *group; /* NULL: none */
    int digits;
    bool spread, sign;
    bool text; /* at least one cell is a text */
} column;

typedef struct cell {
    char *text; /* NULL: a number */
    double value, spread;
} cell;

struct pl_table {
    char *name, *title;
    column *columns;
    size_t column_count, column_room;
    const pl_table_group *group; /* of the next column */
    cell *cells;                 /* [rows][columns] */
    size_t rows, cell_room;
    size_t next; /* column of the next cell */
    bool failed;
};

pl_status pl_table_new(pl_table **out, const char *name, const char *title)
{
    pl_table *table;
    PL_TRY(PL_NEW(table, 1));
    pl_status status = pl_table_rename(table, name, title);
    if (status != PL_OK) {
        pl_table_free(table);
        return status;
    }
    *out = table;
    return PL_OK;
}

void pl_table_free(pl_table *table)
{
    if (table == NULL)
        return;
    for (size_t i = 0; i < table->column_count; i++) {
        pl_mem_free(table->columns[i].key);
        pl_mem_free(table->columns[i].label);
        pl_mem_free(table->columns[i].unit);
    }
    for (size_t i = 0; i < table->rows * table->column_count; i++)
        pl_mem_free(table->cells[i].text);
    pl_mem_free(table->columns);
    pl_mem_free(table->cells);
    pl_mem_free(table->name);
    pl_mem_free(table->title);
    pl_mem_free(table);
}

pl_status pl_table_status(const pl_table *table)
{
    if (table->failed)
        return PL_FAIL(PL_NOMEM, "out of memory: table %s", table->name);
    return PL_OK;
}

static void copy(pl_table *table, char **out, const char *text)
{
    if (pl_mem_copy_text(out, text) != PL_OK)
        table->failed = true;
}

void pl_table_set_group(pl_table *table, const pl_table_group *group)
{
    table->group = group;
}

void pl_table_add_column(pl_table *table, const pl_table_column *given)
{
    PL_ASSERT(table->rows == 0);
    if (table->failed)
        return;
    table->failed = PL_GROW(table->columns, table->column_count,
                            table->column_room) != PL_OK;
    if (table->failed)
        return;
    column *c = &table->columns[table->column_count++];
    *c = (column) { .group = table->group,
                    .digits = given->digits,
                    .spread = given->spread };
    copy(table, &c->key, given->key);
    copy(table, &c->label, given->label != NULL ? given->label : given->key);
    if (given->unit != NULL)
        copy(table, &c->unit, given->unit);
}

void pl_table_show_sign(pl_table *table)
{
    if (!table->failed)
        table->columns[table->column_count - 1].sign = true;
}

void pl_table_add_row(pl_table *table)
{
    PL_ASSERT(table->failed || table->rows == 0 ||
              table->next == table->column_count);
    size_t used = (table->rows + 1) * table->column_count;
    if (table->failed)
        return;
    if (used > table->cell_room) {
        cell *grown =
            pl_mem_resize(table->cells, 2 * used, sizeof *table->cells);
        table->failed = grown == NULL;
        if (grown == NULL)
            return;
        table->cells = grown;
        table->cell_room = 2 * used;
    }
    for (size_t i = used - table->column_count; i < used; i++)
        table->cells[i] = (cell) { .value = NAN };
    table->rows++;
    table->next = 0;
}

/* NULL if out of memory. */
static cell *next_cell(pl_table *table)
{
    if (table->failed)
        return NULL;
    PL_ASSERT(table->rows > 0 && table->next < table->column_count);
    return &table->cells[(table->rows - 1) * table->column_count +
                         table->next++];
}

void pl_table_put_text(pl_table *table, const char *text)
{
    cell *c = next_cell(table);
    if (c == NULL)
        return;
    copy(table, &c->text, text);
    table->columns[table->next - 1].text = true;
}

void pl_table_put_number(pl_table *table, double value)
{
    cell *c = next_cell(table);
    if (c != NULL)
        c->value = value;
}

void pl_table_put_mean(pl_table *table, double mean, double spread)
{
    cell *c = next_cell(table);
    if (c != NULL) {
        c->value = mean;
        c->spread = spread;
    }
}

pl_status pl_table_rename(pl_table *table, const char *name, const char *title)
{
    char *copy;
    PL_TRY(pl_mem_copy_text(&copy, name));
    pl_quote_file_name(copy);
    pl_mem_free(table->name);
    table->name = copy;
    PL_TRY(pl_mem_copy_text(&copy, title));
    pl_mem_free(table->title);
    table->title = copy;
    return PL_OK;
}

const char *pl_table_name(const pl_table *table)
{
    return table->name;
}

size_t pl_table_rows(const pl_table *table)
{
    return table->rows;
}

static const cell *cell_at(const pl_table *table, size_t row, size_t col)
{
    return &table->cells[row * table->column_count + col];
}

static void number_text(const column *c, double value, char *text, size_t room)
{
    bool percent = c->unit != NULL && (strcmp(c->unit, "%") == 0 ||
                                       strcmp(c->unit, "points") == 0);
    value = percent ? 100 * value : value;
    if (!isfinite(value))
        text[0] = '\0';
    else if (c->digits < 0)
        snprintf(text, room, "%.6g", value);
    else
        snprintf(text, room, c->sign ? "%+.*f" : "%.*f", c->digits, value);
}

/* The displayed text; points to the cell's text or into `room`. */
static const char *shown(const column *c, const cell *at,
                         char room[NUMBER_BYTES])
{
    char spread[NUMBER_BYTES / 2];
    if (at->text != NULL)
        return at->text;
    number_text(c, at->value, room, NUMBER_BYTES / 2);
    if (!c->spread || room[0] == '\0' || at->spread == 0)
        return room;
    number_text(c, at->spread, spread, sizeof spread);
    size_t used = strlen(room);
    snprintf(room + used, NUMBER_BYTES - used, " \xc2\xb1 %s", spread);
    return room;
}

static const char *header(const column *c, char text[LABEL_BYTES])
{
    snprintf(text, LABEL_BYTES, c->unit != NULL ? "%s [%s]" : "%s", c->label,
             c->unit);
    return text;
}

/* Width of UTF-8 text on a terminal, after quoting. */
static size_t width_of(const char *text)
{
    pl_buffer quoted = { 0 };
    size_t width = 0;
    pl_quote_terminal(&quoted, text);
    for (size_t i = 0; i < quoted.bytes; i++)
        width += (quoted.data[i] & 0xc0) != 0x80;
    pl_buffer_close(&quoted);
    return width;
}

static bool is_text(const pl_table *table, size_t col)
{
    return table->columns[col].text;
}

static size_t column_width(const pl_table *table, size_t col)
{
    char room[NUMBER_BYTES], label[LABEL_BYTES];
    const column *c = &table->columns[col];
    size_t width = width_of(header(c, label));
    for (size_t r = 0; r < table->rows; r++) {
        size_t used = width_of(shown(c, cell_at(table, r, col), room));
        width = used > width ? used : width;
    }
    return width;
}

/* Texts are left-aligned, numbers right-aligned. */
static void put_padded(pl_buffer *out, const char *text, size_t width,
                       bool left, bool last)
{
    size_t used = width_of(text);
    for (size_t i = used; !left && i < width; i++)
        pl_buffer_text(out, " ");
    pl_quote_terminal(out, text);
    for (size_t i = used; left && !last && i < width; i++)
        pl_buffer_text(out, " ");
    pl_buffer_text(out, last ? "\n" : "  ");
}

/* The first column, and columns `first` .. end-1. */
static void print_columns(const pl_table *table, const size_t *widths,
                          size_t first, size_t end, pl_buffer *out)
{
    char room[NUMBER_BYTES], label[LABEL_BYTES];
    for (size_t r = 0; r <= table->rows; r++)
        for (size_t col = 0; col < end;
             col = col + 1 < first ? first : col + 1) {
            const column *c = &table->columns[col];
            put_padded(out,
                       r == 0 ? header(c, label)
                              : shown(c, cell_at(table, r - 1, col), room),
                       widths[col], is_text(table, col), col + 1 == end);
        }
}

void pl_table_print_within(const pl_table *table, size_t width, pl_buffer *out)
{
    size_t count = table->column_count;
    size_t *widths = pl_mem_alloc(count + 1, sizeof *widths);
    if (widths == NULL) {
        out->failed = true;
        return;
    }
    for (size_t col = 0; col < count; col++)
        widths[col] = column_width(table, col);
    size_t first = 1, end;
    do { /* a table of one column also has one turn */
        size_t used = widths[0];
        for (end = first; end < count; end++) {
            used += 2 + widths[end];
            if (width > 0 && used > width && end > first)
                break;
        }
        end = end > first ? end : first;
        pl_buffer_text(out, first > 1 ? "\n" : "");
        print_columns(table, widths, first, end < count ? end : count, out);
        first = end;
    } while (first < count);
    pl_mem_free(widths);
}

void pl_table_print(const pl_table *table, pl_buffer *out)
{
    pl_table_print_within(table, 0, out);
}

static void put_csv_number(pl_buffer *out, double value)
{
    if (isfinite(value))
        pl_buffer_format(out, "%.15g", value);
}

static void put_csv_key(pl_buffer *out, const column *c, const char *end)
{
    char *text;
    if (pl_mem_format(&text, "%s%s%s", c->group != NULL ? c->group->prefix : "",
                      c->key, end) != PL_OK) {
        out->failed = true;
        return;
    }
    pl_quote_csv(out, text);
    pl_mem_free(text);
}

void pl_table_csv(const pl_table *table, pl_buffer *out)
{
    for (size_t col = 0; col < table->column_count; col++) {
        const column *c = &table->columns[col];
        pl_buffer_text(out, col > 0 ? "," : "");
        put_csv_key(out, c, "");
        if (!c->spread)
            continue;
        pl_buffer_text(out, ",");
        put_csv_key(out, c, "_spread");
    }
    pl_buffer_text(out, "\r\n");
    for (size_t r = 0; r < table->rows; r++) {
        for (size_t col = 0; col < table->column_count; col++) {
            const cell *at = cell_at(table, r, col);
            pl_buffer_text(out, col > 0 ? "," : "");
            if (at->text != NULL)
                pl_quote_csv(out, at->text);
            else
                put_csv_number(out, at->value);
            if (!table->columns[col].spread)
                continue;
            pl_buffer_text(out, ",");
            put_csv_number(out, at->spread);
        }
        pl_buffer_text(out, "\r\n");
    }
}

/* Texts that are all numbers, such as the values of a flag, are right-aligned
 * on the page. */
static bool is_prose(const pl_table *table, size_t col)
{
    bool any = false;
    for (size_t r = 0; r < table->rows; r++) {
        const char *text = cell_at(table, r, col)->text;
        if (text != NULL && text[0] != '\0' && !pl_quote_is_number(text))
            return true;
        any = any || (text != NULL && text[0] != '\0');
    }
    return is_text(table, col) && !any;
}

/* 1168177 as 1,168,177, except after a point. */
static void put_grouped(const char *text, pl_buffer *out)
{
    for (size_t i = 0; text[i] != '\0';) {
        size_t digits = strspn(text + i, "0123456789");
        bool group = digits > 4 && (i == 0 || text[i - 1] != '.');
        for (size_t d = 0; d < digits; d++)
            pl_buffer_format(out, "%s%c",
                             group && d > 0 && (digits - d) % 3 == 0 ? "," : "",
                             text[i + d]);
        i += digits;
        if (text[i] != '\0')
            pl_buffer_format(out, "%c", text[i++]);
    }
}

static void put_html_row(const pl_table *table, size_t row, const bool *prose,
                         pl_buffer *out)
{
    char room[NUMBER_BYTES];
    pl_buffer_text(out, "<tr>");
    for (size_t col = 0; col < table->column_count; col++) {
        const cell *at = cell_at(table, row, col);
        const char *text = shown(&table->columns[col], at, room);
        pl_buffer_text(out, prose[col] ? "<td class=text>" : "<td>");
        if (at->text != NULL)
            pl_quote_html(out, text);
        else
            put_grouped(text, out);
        pl_buffer_text(out, "</td>");
    }
    pl_buffer_text(out, "</tr>\n");
}

static void put_html_head(const pl_table *table, const bool *prose,
                          pl_buffer *out)
{
    char label[LABEL_BYTES];
    pl_buffer_text(out, "<tr>");
    for (size_t col = 0; col < table->column_count; col++) {
        pl_buffer_text(out, prose[col] ? "<th class=text>" : "<th>");
        pl_quote_html(out, header(&table->columns[col], label));
        pl_buffer_text(out, "</th>");
    }
    pl_buffer_text(out, "</tr>\n");
}

void pl_table_html(const pl_table *table, pl_buffer *out)
{
    bool *prose = pl_mem_alloc(table->column_count + 1, sizeof *prose);
    if (prose == NULL) {
        out->failed = true;
        return;
    }
    for (size_t col = 0; col < table->column_count; col++)
        prose[col] = is_prose(table, col);
    pl_buffer_text(out, "<table><caption>");
    pl_quote_html(out, table->title);
    pl_buffer_text(out, "</caption><thead>");
    put_html_head(table, prose, out);
    pl_buffer_text(out, "</thead>");
    for (size_t r = 0; r < table->rows; r++) {
        pl_buffer_text(out, r == 0 ? "<tbody>" : "");
        put_html_row(table, r, prose, out);
    }
    pl_buffer_text(out, table->rows > 0 ? "</tbody></table>\n" : "</table>\n");
    pl_mem_free(prose);
}

static pl_status set_number(pl_json *object, const char *key, double value)
{
    bool whole = fabs(value) < 9007199254740992.0 && floor(value) == value;
    return whole ? pl_json_set_int(object, key, (int64_t)value)
                 : pl_json_set_real(object, key, value);
}

/* Convert a text to the value it represents. */
static pl_status set_typed(pl_json *object, const char *key, const char *text)
{
    size_t sign = text[0] == '-';
    size_t digits = strspn(text + sign, "0123456789");
    if (digits > 0 && digits <= 18 && text[sign + digits] == '\0')
        return pl_json_set_int(object, key, strtoll(text, NULL, 10));
    if (text[0] == '\0')
        return pl_json_set_null(object, key);
    if (strcmp(text, "true") == 0 || strcmp(text, "false") == 0)
        return pl_json_set_bool(object, key, text[0] == 't');
    return pl_quote_is_number(text)
               ? pl_json_set_real(object, key, strtod(text, NULL))
               : pl_json_set_text(object, key, text);
}

static pl_status set_value(pl_json *object, const char *key, const column *c,
                           const cell *at)
{
    if (at->text == NULL)
        return c->digits == 0 && !c->spread
                   ? set_number(object, key, at->value)
                   : pl_json_set_real(object, key, at->value);
    return c->group != NULL && c->group->typed
               ? set_typed(object, key, at->text)
               : pl_json_set_text(object, key, at->text);
}

static pl_status set_cell(pl_json *object, const column *c, const cell *at)
{
    const char *prefix = c->group != NULL ? c->group->prefix : "";
    char *key;
    PL_TRY(pl_mem_format(&key, "%s%s", prefix, c->key));
    pl_status status = set_value(object, key, c, at);
    pl_mem_free(key);
    if (status != PL_OK || !c->spread)
        return status;
    PL_TRY(pl_mem_format(&key, "%s%s_spread", prefix, c->key));
    status = pl_json_set_real(object, key, at->spread);
    pl_mem_free(key);
    return status;
}

static pl_status row_json(const pl_table *table, size_t row, pl_json *object)
{
    for (size_t col = 0; col < table->column_count; col++)
        PL_TRY(
            set_cell(object, &table->columns[col], cell_at(table, row, col)));
    return PL_OK;
}

pl_status pl_table_json(const pl_table *table, pl_json **out)
{
    pl_json *rows, *row;
    PL_TRY(pl_table_status(table));
    PL_TRY(pl_json_new_array(&rows));
    pl_status status = PL_OK;
    for (size_t r = 0; r < table->rows && status == PL_OK; r++) {
        status = pl_json_new_object(&row);
        if (status != PL_OK)
            break;
        status = row_json(table, r, row);
        if (status == PL_OK)
            status = pl_json_append_take(rows, row);
        else
            pl_json_free(row);
    }
    if (status != PL_OK) {
        pl_json_free(rows);
        return status;
    }
    *out = rows;
    return PL_OK;
}
