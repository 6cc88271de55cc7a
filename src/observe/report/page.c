/* page.c - assembles a report's HTML: sections, tables, figures, and the
 * embedded style and scripts. All foreign text is quoted here. */
#include "observe/report/page.h"

#include "base/error.h"
#include "base/file/file.h"
#include "base/mem.h"
#include "base/text/quote.h"
#include "observe/report/assets.h"

#include <stdio.h>

struct pl_page {
    char *title;
    pl_buffer note, body;
    pl_buffer figures_json; /* a list without its brackets */
    pl_table **tables;
    size_t table_count, table_room;
    pl_figure **figures;
    size_t figure_count, figure_room;
    pl_error failed; /* the first failure; PL_OK: none */
};

pl_status pl_page_new(pl_page **out, const char *title)
{
    pl_page *page;
    PL_TRY(PL_NEW(page, 1));
    pl_status status = pl_mem_copy_text(&page->title, title);
    if (status != PL_OK) {
        pl_page_free(page);
        return status;
    }
    *out = page;
    return PL_OK;
}

void pl_page_free(pl_page *page)
{
    if (page == NULL)
        return;
    for (size_t i = 0; i < page->table_count; i++)
        pl_table_free(page->tables[i]);
    for (size_t i = 0; i < page->figure_count; i++)
        pl_figure_free(page->figures[i]);
    pl_mem_free(page->tables);
    pl_mem_free(page->figures);
    pl_buffer_close(&page->note);
    pl_buffer_close(&page->body);
    pl_buffer_close(&page->figures_json);
    pl_mem_free(page->title);
    pl_mem_free(page);
}

pl_status pl_page_status(const pl_page *page)
{
    if (page->failed.status != PL_OK)
        return pl_error_raise(&page->failed);
    PL_TRY(pl_buffer_status(&page->note));
    PL_TRY(pl_buffer_status(&page->body));
    return pl_buffer_status(&page->figures_json);
}

static void put_tag(pl_page *page, const char *before, const char *text,
                    const char *after)
{
    pl_buffer_text(&page->body, before);
    pl_quote_html(&page->body, text);
    pl_buffer_text(&page->body, after);
}

void pl_page_heading(pl_page *page, const char *text)
{
    put_tag(page, "<h2>", text, "</h2>\n");
}

void pl_page_text(pl_page *page, const char *text)
{
    put_tag(page, "<p>", text, "</p>\n");
}

void pl_page_note(pl_page *page, const char *text)
{
    pl_buffer_text(&page->note, "<p>");
    pl_quote_html(&page->note, text);
    pl_buffer_text(&page->note, "</p>\n");
}

void pl_page_lines(pl_page *page, const char *text)
{
    put_tag(page, "<pre>", text, "</pre>\n");
}

void pl_page_link(pl_page *page, const char *href, const char *text,
                  const char *note)
{
    put_tag(page, "<p><a href=\"", href, "\">");
    put_tag(page, "", text, "</a> ");
    put_tag(page, "", note, "</p>\n");
}

void pl_page_fold(pl_page *page, const char *title)
{
    put_tag(page, "<details><summary>", title, "</summary>\n");
}

void pl_page_unfold(pl_page *page)
{
    pl_buffer_text(&page->body, "</details>\n");
}

/* Room for one more pointer. */
static bool reserve(pl_page *page, void ***list, size_t count, size_t *room)
{
    if (count < *room)
        return true;
    size_t more = 2 * *room + 16;
    void **grown = pl_mem_resize(*list, more, sizeof *grown);
    pl_status status = pl_mem_check(grown, more, sizeof *grown);
    if (status != PL_OK) {
        pl_error_save(&page->failed, status);
        return false;
    }
    *list = grown;
    *room = more;
    return true;
}

static bool is_fine(pl_page *page, pl_status status)
{
    if (page->failed.status == PL_OK && status != PL_OK)
        pl_error_save(&page->failed, status);
    return page->failed.status == PL_OK;
}

void pl_page_take_table(pl_page *page, pl_table *table)
{
    if (!is_fine(page, pl_table_status(table)) || pl_table_rows(table) == 0 ||
        !reserve(page, (void ***)&page->tables, page->table_count,
                 &page->table_room)) {
        pl_table_free(table);
        return;
    }
    page->tables[page->table_count++] = table;
    pl_buffer_text(&page->body, "<div class=wide>");
    pl_table_html(table, &page->body);
    pl_buffer_text(&page->body, "</div>\n");
}

void pl_page_take_figure(pl_page *page, pl_figure *figure)
{
    if (!is_fine(page, pl_figure_status(figure)) ||
        pl_figure_is_empty(figure) ||
        !reserve(page, (void ***)&page->figures, page->figure_count,
                 &page->figure_room)) {
        pl_figure_free(figure);
        return;
    }
    pl_buffer_format(&page->body, "<figure data-figure=%zu><figcaption>",
                     page->figure_count);
    pl_quote_html(&page->body, pl_figure_title(figure));
    pl_buffer_text(&page->body, "</figcaption><div class=chart><canvas>"
                                "</canvas></div></figure>\n");
    pl_buffer_text(&page->figures_json, page->figure_count > 0 ? ",\n" : "");
    pl_figure_json(figure, &page->figures_json);
    page->figures[page->figure_count++] = figure;
}

static void put_asset(pl_buffer *out, pl_asset asset)
{
    pl_buffer_put(out, asset.data, asset.bytes);
}

static void put_head(const pl_page *page, const char *policy, pl_buffer *out)
{
    pl_buffer_format(
        out,
        "<!DOCTYPE html>\n<html lang=en>\n<head>\n<meta charset=utf-8>\n%s"
        "<meta name=viewport content=\"width=device-width\">\n"
        "<meta name=color-scheme content=\"light dark\">\n<title>",
        policy);
    pl_quote_html(out, page->title);
    pl_buffer_text(out, "</title>\n");
}

static void put_body(const pl_page *page, bool changing, pl_buffer *out)
{
    pl_buffer_format(out, "</head>\n<body>\n<main%s>\n<h1>",
                     changing ? " data-changing" : "");
    pl_quote_html(out, page->title);
    pl_buffer_text(out, "</h1>\n");
    pl_buffer_put(out, page->note.data, page->note.bytes);
    pl_buffer_put(out, page->body.data, page->body.bytes);
    pl_buffer_text(out, "</main>\n<script type=application/json id=figures>[");
    pl_buffer_put(out, page->figures_json.data, page->figures_json.bytes);
    pl_buffer_text(out, "]</script>\n");
}

void pl_page_served(const pl_page *page, bool changing, pl_buffer *out)
{
    put_head(page, "", out);
    pl_buffer_text(out, "<link rel=stylesheet href=/page.css>\n"
                        "<link rel=icon href=\"data:,\">\n");
    put_body(page, changing, out);
    pl_buffer_text(out, "<script src=/chart.js></script>\n"
                        "<script src=/page.js></script>\n"
                        "<script src=/live.js></script>\n"
                        "</body>\n</html>\n");
}

void pl_page_html(const pl_page *page, pl_buffer *out)
{
    put_head(page,
             "<meta http-equiv=Content-Security-Policy content=\"default-src "
             "'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; "
             "img-src data:\">\n",
             out);
    pl_buffer_text(out, "<style>\n");
    put_asset(out, pl_asset_style());
    pl_buffer_text(out, "</style>\n");
    put_body(page, false, out);
    pl_buffer_text(out, "<script>\n");
    put_asset(out, pl_asset_chart());
    pl_buffer_text(out, "</script>\n<script>\n");
    put_asset(out, pl_asset_script());
    pl_buffer_text(out, "</script>\n</body>\n</html>\n");
}

pl_status pl_page_write_tables(const pl_page *page, const char *folder)
{
    for (size_t i = 0; i < page->table_count; i++) {
        pl_buffer text = { 0 };
        char *path;
        PL_TRY(pl_mem_format(&path, "%s/%s.csv", folder,
                             pl_table_name(page->tables[i])));
        pl_table_csv(page->tables[i], &text);
        pl_status status = pl_buffer_save(&text, path);
        pl_mem_free(path);
        pl_buffer_close(&text);
        PL_TRY(status);
    }
    return PL_OK;
}

void pl_page_gnuplot(const pl_page *page, pl_buffer *out)
{
    for (size_t i = 0; i < page->figure_count; i++)
        pl_figure_gnuplot(page->figures[i], out);
}

size_t pl_page_tables(const pl_page *page)
{
    return page->table_count;
}

size_t pl_page_figures(const pl_page *page)
{
    return page->figure_count;
}
