#include "table.h"

#include "paceline/base.h"

#include <ctype.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static void put(table_line *line, const char *format, ...) PL_PRINTF(2, 3);

static void put(table_line *line, const char *format, ...)
{
    size_t room = sizeof line->text - line->used;
    va_list list;
    va_start(list, format);
    int length = vsnprintf(line->text + line->used, room, format, list);
    va_end(list);
    if (length > 0)
        line->used += (size_t)length < room ? (size_t)length : room - 1;
}

static void clear(table_line *line)
{
    line->used = 0;
    line->text[0] = '\0';
}

void table_begin(table *t, const char *part, const char *title,
                 const char *note)
{
    t->part = part;
    t->has_head = false;
    clear(&t->head);
    clear(&t->rule);
    clear(&t->row);
    if (!t->json)
        printf("## %s\n\n%s\n\n", title, note);
}

void table_end(table *t)
{
    if (!t->json)
        printf("\n");
    fflush(stdout);
}

/* "GFLOP/s" becomes gflop_s. */
static void put_key(table_line *line, const char *name, const char *suffix)
{
    char key[64];
    size_t used = 0;
    for (; *name != '\0' && used < sizeof key - 1; name++)
        key[used++] = isalnum((unsigned char)*name)
                          ? (char)tolower((unsigned char)*name)
                          : '_';
    key[used] = '\0';
    put(line, ",\"%s%s\":", key, suffix);
}

static void put_json_number(table *t, const char *name, const char *suffix,
                            double value)
{
    put_key(&t->row, name, suffix);
    if (isfinite(value))
        put(&t->row, "%.6g", value);
    else
        put(&t->row, "null");
}

/* Just enough digits to distinguish figures. */
static void put_plain(table_line *line, double value)
{
    double size = fabs(value);
    put(line, "%.*f", size >= 100 || size == 0 ? 0 : size >= 10 ? 1 : 2, value);
}

static void begin_cell(table *t, const char *name, bool text)
{
    if (t->json)
        return;
    if (!t->has_head) {
        put(&t->head, "| %s ", name);
        put(&t->rule, text ? "|---" : "|--:");
    }
    put(&t->row, "| ");
}

static void end_cell(table *t)
{
    if (!t->json)
        put(&t->row, " ");
}

void table_text(table *t, const char *name, const char *text)
{
    begin_cell(t, name, true);
    if (t->json) { /* our own names: nothing to escape */
        put_key(&t->row, name, "");
        put(&t->row, "\"%s\"", text);
    } else {
        put(&t->row, "%s", text);
    }
    end_cell(t);
}

void table_count(table *t, const char *name, int64_t value)
{
    begin_cell(t, name, false);
    if (t->json)
        put_key(&t->row, name, "");
    put(&t->row, "%lld", (long long)value);
    end_cell(t);
}

void table_number(table *t, const char *name, double value)
{
    begin_cell(t, name, false);
    if (t->json)
        put_json_number(t, name, "", value);
    else
        put_plain(&t->row, value);
    end_cell(t);
}

void table_measured(table *t, const char *name, measurement m)
{
    begin_cell(t, name, false);
    if (t->json) {
        put_json_number(t, name, "", m.median);
        put_json_number(t, name, "_min", m.least);
        put_json_number(t, name, "_max", m.most);
    } else {
        put_plain(&t->row, m.median);
        put(&t->row, " (");
        put_plain(&t->row, m.least);
        put(&t->row, "-");
        put_plain(&t->row, m.most);
        put(&t->row, ")");
    }
    end_cell(t);
}

void table_share(table *t, const char *name, double value, double limit)
{
    begin_cell(t, name, false);
    if (t->json)
        put_json_number(t, name, "", limit > 0 ? value / limit : NAN);
    else if (limit > 0)
        put(&t->row, "%.0f %%", 100 * value / limit);
    end_cell(t);
}

void table_empty(table *t, const char *name)
{
    begin_cell(t, name, false);
    end_cell(t);
}

void table_row_end(table *t)
{
    if (t->json) {
        printf("{\"part\":\"%s\"%s}\n", t->part, t->row.text);
    } else {
        if (!t->has_head)
            printf("%s|\n%s|\n", t->head.text, t->rule.text);
        printf("%s|\n", t->row.text);
    }
    t->has_head = true;
    clear(&t->row);
    fflush(stdout);
}
