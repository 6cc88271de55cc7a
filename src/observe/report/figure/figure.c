/* figure.c - collects the series of one chart and writes them as JSON for the
 * page's script. */
#include "observe/report/figure/figure.h"

#include "base/assert.h"
#include "base/mem.h"
#include "base/text/quote.h"
#include "observe/report/figure/figure_priv.h"

#include <math.h>

pl_status pl_figure_new(pl_figure **out, const pl_figure_opts *opts)
{
    pl_figure *figure;
    PL_TRY(PL_NEW(figure, 1));
    figure->kind = opts->kind;
    figure->log_x = opts->log_x;
    figure->log_y = opts->log_y;
    figure->marks = opts->marks;
    figure->tasks = opts->tasks;
    figure->part = opts->part;
    pl_status status = pl_mem_copy_text(&figure->name, opts->name);
    if (status == PL_OK)
        pl_quote_file_name(figure->name);
    if (status == PL_OK)
        status = pl_mem_copy_text(&figure->title, opts->title);
    if (status == PL_OK)
        status = pl_mem_copy_text(&figure->x, opts->x);
    if (status == PL_OK)
        status = pl_mem_copy_text(&figure->y, opts->y);
    if (status == PL_OK && opts->x_key != NULL)
        status = pl_mem_copy_text(&figure->x_key, opts->x_key);
    if (status == PL_OK && opts->y_key != NULL)
        status = pl_mem_copy_text(&figure->y_key, opts->y_key);
    if (status != PL_OK) {
        pl_figure_free(figure);
        return status;
    }
    *out = figure;
    return PL_OK;
}

void pl_figure_free(pl_figure *figure)
{
    if (figure == NULL)
        return;
    for (size_t i = 0; i < figure->series_count; i++) {
        pl_mem_free(figure->series[i].name);
        pl_mem_free(figure->series[i].points);
    }
    for (size_t i = 0; i < figure->category_count; i++)
        pl_mem_free(figure->categories[i].name);
    pl_mem_free(figure->series);
    pl_mem_free(figure->categories);
    pl_mem_free(figure->name);
    pl_mem_free(figure->title);
    pl_mem_free(figure->x);
    pl_mem_free(figure->y);
    pl_mem_free(figure->x_key);
    pl_mem_free(figure->y_key);
    pl_mem_free(figure->runs);
    pl_mem_free(figure);
}

pl_status pl_figure_status(const pl_figure *figure)
{
    if (figure->failed)
        return PL_FAIL(PL_NOMEM, "out of memory: figure %s", figure->name);
    return PL_OK;
}

void pl_figure_fail(pl_figure *figure)
{
    figure->failed = true;
}

const char *pl_figure_name(const pl_figure *figure)
{
    return figure->name;
}

const char *pl_figure_title(const pl_figure *figure)
{
    return figure->title;
}

size_t pl_figure_longest(const pl_figure *figure)
{
    size_t most = 0;
    for (size_t i = 0; i < figure->series_count; i++)
        if (figure->series[i].count > most)
            most = figure->series[i].count;
    return most;
}

bool pl_figure_is_empty(const pl_figure *figure)
{
    return pl_figure_longest(figure) == 0;
}

/* Memory for one more element of `size` bytes; NULL and `failed` if out of
 * memory. */
static void *grow(pl_figure *figure, void *list, size_t count, size_t *room,
                  size_t size)
{
    if (figure->failed || count < *room)
        return figure->failed ? NULL : list;
    void *grown = pl_mem_resize(list, 2 * *room + 8, size);
    figure->failed = grown == NULL;
    if (grown != NULL)
        *room = 2 * *room + 8;
    return grown;
}

void pl_figure_add_category(pl_figure *figure, const char *name, size_t run)
{
    PL_ASSERT(figure->kind == PL_FIGURE_BARS ||
              figure->kind == PL_FIGURE_STACKED);
    pl_figure_category *list =
        grow(figure, figure->categories, figure->category_count,
             &figure->category_room, sizeof *list);
    if (list == NULL)
        return;
    figure->categories = list;
    pl_figure_category *own = &list[figure->category_count];
    own->run = run;
    figure->failed = pl_mem_copy_text(&own->name, name) != PL_OK;
    figure->category_count += !figure->failed;
}

void pl_figure_add_series(pl_figure *figure, const char *name,
                          pl_figure_style style)
{
    pl_figure_series *list = grow(figure, figure->series, figure->series_count,
                                  &figure->series_room, sizeof *list);
    if (list == NULL)
        return;
    figure->series = list;
    list[figure->series_count] = (pl_figure_series) { .style = style };
    figure->failed =
        pl_mem_copy_text(&list[figure->series_count].name, name) != PL_OK;
    figure->series_count += !figure->failed;
}

void pl_figure_add_point(pl_figure *figure, double x, double y, double spread)
{
    if (figure->failed || !isfinite(x) || !isfinite(y))
        return;
    PL_ASSERT(figure->series_count > 0);
    pl_figure_series *series = &figure->series[figure->series_count - 1];
    pl_series_point *list = grow(figure, series->points, series->count,
                                 &series->room, sizeof *list);
    if (list == NULL)
        return;
    series->points = list;
    /* An overflow would not be a number in JSON. */
    list[series->count++] =
        (pl_series_point) { x, y, isfinite(spread) ? spread : 0,
                            figure->run_count, 0 };
}

void pl_figure_add_run(pl_figure *figure, size_t run)
{
    if (figure->failed || figure->series_count == 0)
        return;
    pl_figure_series *series = &figure->series[figure->series_count - 1];
    size_t *list = grow(figure, figure->runs, figure->run_count,
                        &figure->run_room, sizeof *list);
    if (list == NULL || series->count == 0)
        return;
    figure->runs = list;
    list[figure->run_count++] = run;
    series->points[series->count - 1].run_count++;
}

void pl_figure_add_curve(pl_figure *figure, const pl_curve *curve, double scale)
{
    for (size_t i = 0; i < curve->count; i++)
        pl_figure_add_point(figure, curve->points[i].x,
                            scale * curve->points[i].y, 0);
}

/* --- as JSON ---------------------------------------------------------- */

static void put_points(const pl_figure_series *series, pl_buffer *out)
{
    bool spread = false;
    pl_buffer_text(out, ",\"points\":[");
    for (size_t i = 0; i < series->count; i++) {
        const pl_series_point *p = &series->points[i];
        pl_buffer_format(out, "%s[%.6g,%.6g]", i > 0 ? "," : "", p->x, p->y);
        spread = spread || p->spread > 0;
    }
    pl_buffer_text(out, "]");
    for (size_t i = 0; spread && i < series->count; i++)
        pl_buffer_format(out, "%s%.6g%s", i > 0 ? "," : ",\"spread\":[",
                         series->points[i].spread,
                         i + 1 == series->count ? "]" : "");
}

static void put_runs(const pl_figure *figure, const pl_figure_series *series,
                     pl_buffer *out)
{
    pl_buffer_text(out, ",\"runs\":[");
    for (size_t i = 0; i < series->count; i++) {
        const pl_series_point *p = &series->points[i];
        pl_buffer_text(out, i > 0 ? ",[" : "[");
        for (size_t r = 0; r < p->run_count; r++)
            pl_buffer_format(out, "%s%zu", r > 0 ? "," : "",
                             figure->runs[p->run + r]);
        pl_buffer_text(out, "]");
    }
    pl_buffer_text(out, "]");
}

static void put_series(const pl_figure *figure, pl_buffer *out)
{
    static const char *const styles[] = { "", ",\"style\":\"published\"",
                                          ",\"style\":\"ideal\"" };
    pl_buffer_text(out, ",\"series\":[");
    for (size_t i = 0; i < figure->series_count; i++) {
        const pl_figure_series *series = &figure->series[i];
        pl_buffer_text(out, i > 0 ? ",{\"name\":" : "{\"name\":");
        pl_quote_json(out, series->name);
        pl_buffer_text(out, styles[series->style]);
        put_points(series, out);
        if (figure->run_count > 0)
            put_runs(figure, series, out);
        pl_buffer_text(out, "}");
    }
    pl_buffer_text(out, "]");
}

static void put_categories(const pl_figure *figure, pl_buffer *out)
{
    pl_buffer_text(out, ",\"categories\":[");
    for (size_t i = 0; i < figure->category_count; i++) {
        pl_buffer_text(out, i > 0 ? "," : "");
        pl_quote_json(out, figure->categories[i].name);
    }
    pl_buffer_text(out, "],\"owners\":[");
    for (size_t i = 0; i < figure->category_count; i++)
        pl_buffer_format(out, "%s[%zu]", i > 0 ? "," : "",
                         figure->categories[i].run);
    pl_buffer_text(out, "]");
}

static void put_text(const char *before, const char *text, pl_buffer *out)
{
    pl_buffer_text(out, before);
    pl_quote_json(out, text);
}

static void put_explore(const pl_figure *figure, pl_buffer *out)
{
    if (figure->x_key == NULL || figure->y_key == NULL)
        return;
    put_text(",\"explore\":{\"x\":", figure->x_key, out);
    put_text(",\"y\":", figure->y_key, out);
    pl_buffer_format(out, ",\"part\":%zu}", figure->part);
}

void pl_figure_json(const pl_figure *figure, pl_buffer *out)
{
    static const char *const kinds[] = { "lines", "bars", "stacked", "curves" };
    pl_buffer_format(out,
                     "{\"kind\":\"%s\",\"log\":%s,\"logY\":%s,"
                     "\"marks\":%s",
                     kinds[figure->kind], figure->log_x ? "true" : "false",
                     figure->log_y ? "true" : "false",
                     figure->marks ? "true" : "false");
    put_text(",\"id\":", figure->name, out);
    put_text(",\"title\":", figure->title, out);
    put_text(",\"x\":", figure->x, out);
    put_text(",\"y\":", figure->y, out);
    put_explore(figure, out);
    if (figure->kind == PL_FIGURE_CURVES) {
        put_text(",\"curve\":", figure->y_key, out);
        pl_buffer_format(out, ",\"part\":%zu,\"tasks\":%s", figure->part,
                         figure->tasks ? "true" : "false");
    } else {
        put_categories(figure, out);
        put_series(figure, out);
    }
    pl_buffer_text(out, "}");
}
