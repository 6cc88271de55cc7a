/* page.c - assembles a report's HTML: sections, tables, figures, and the
 * embedded style and scripts. All foreign text is quoted here. */
#include "observe/report/page.h"

#include "base/error.h"
#include "base/file/file.h"
#include "base/mem.h"
#include "base/text/quote.h"
#include "observe/report/assets.h"

#include <stdio.h>
#include <string.h>

struct pl_page {
    char *title;
    pl_buffer note, body;
    pl_buffer contents;     /* entries of the contents list */
    pl_buffer model;        /* members of a JSON object */
    pl_buffer figures_json; /* a JSON list without its brackets */
    size_t headings, groups;
    size_t mounted; /* number of entries of figures_json */
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
    pl_buffer_close(&page->contents);
    pl_buffer_close(&page->model);
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
    PL_TRY(pl_buffer_status(&page->contents));
    PL_TRY(pl_buffer_status(&page->model));
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
    size_t number = ++page->headings;
    pl_buffer_format(&page->contents, "<li><a href=\"#section-%zu\">", number);
    pl_quote_html(&page->contents, text);
    pl_buffer_text(&page->contents, "</a></li>\n");
    pl_buffer_format(&page->body, "<h2 id=section-%zu>", number);
    put_tag(page, "", text, "</h2>\n");
}

void pl_page_text(pl_page *page, const char *text)
{
    put_tag(page, "<p>", text, "</p>\n");
}

void pl_page_list(pl_page *page, const char *lines)
{
    pl_buffer *out = &page->body;
    pl_buffer line = { 0 };
    pl_buffer_text(out, "<ul class=findings>\n");
    for (size_t bytes; lines[0] != '\0'; lines += bytes) {
        bytes = strcspn(lines, "\n");
        pl_buffer_clear(&line);
        pl_buffer_put(&line, lines, bytes);
        out->failed = out->failed || line.failed;
        if (bytes > 0 && !line.failed)
            put_tag(page, "<li>", line.data, "</li>\n");
        bytes += lines[bytes] == '\n';
    }
    pl_buffer_text(out, "</ul>\n");
    pl_buffer_close(&line);
}

void pl_page_begin_figures(pl_page *page)
{
    pl_buffer_format(&page->body, "<div class=figures data-zoom=%zu>\n",
                     ++page->groups);
}

void pl_page_end_figures(pl_page *page)
{
    pl_buffer_text(&page->body, "</div>\n");
}

void pl_page_display(pl_page *page)
{
    pl_buffer_text(&page->body, "<div id=display></div>\n");
}

void pl_page_chooser(pl_page *page, const char *what, size_t run)
{
    pl_buffer_format(&page->body,
                     "<div class=controls data-chooser=%s data-run=%zu></div>"
                     "\n",
                     what, run);
}

void pl_page_explorer(pl_page *page)
{
    pl_page_heading(page, "Explore");
    pl_buffer_text(&page->body, "<div id=explorer></div>\n");
}

pl_buffer *pl_page_model(pl_page *page)
{
    return &page->model;
}

void pl_page_note(pl_page *page, const char *text)
{
    pl_buffer_text(&page->note, "<p>");
    pl_quote_html(&page->note, text);
    pl_buffer_text(&page->note, "</p>\n");
}

void pl_page_back(pl_page *page, const char *href, const char *text)
{
    pl_buffer_text(&page->note, "<p class=back><a href=\"");
    pl_quote_html(&page->note, href);
    pl_buffer_text(&page->note, "\">");
    pl_quote_html(&page->note, text);
    pl_buffer_text(&page->note, "</a></p>\n");
}

void pl_page_part(pl_page *page, const pl_buffer *html)
{
    pl_buffer_put(&page->body, html->data, html->bytes);
}

void pl_page_head_part(pl_page *page, const pl_buffer *html)
{
    pl_buffer_put(&page->note, html->data, html->bytes);
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
    pl_status status = PL_GROW(*list, count, *room);
    if (status != PL_OK)
        pl_error_save(&page->failed, status);
    return status == PL_OK;
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

/* Add the next figure; the caller appends its JSON. */
static void begin_figure(pl_page *page, const char *name, const char *title)
{
    pl_buffer_format(&page->body,
                     "<figure id=\"%s\" data-figure=%zu><figcaption>", name,
                     page->mounted);
    pl_quote_html(&page->body, title);
    pl_buffer_text(&page->body, "</figcaption></figure>\n");
    pl_buffer_text(&page->figures_json, page->mounted > 0 ? ",\n" : "");
    page->mounted++;
}

void pl_page_drawing(pl_page *page, const char *name, const char *title,
                     const pl_buffer *members)
{
    begin_figure(page, name, title);
    pl_buffer_format(&page->figures_json,
                     "{\"kind\":\"%s\",\"id\":\"%s\",\"title\":", name, name);
    pl_quote_json(&page->figures_json, title);
    pl_buffer_put(&page->figures_json, members->data, members->bytes);
    pl_buffer_text(&page->figures_json, "}");
    (void)is_fine(page, pl_buffer_status(members));
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
    begin_figure(page, pl_figure_name(figure), pl_figure_title(figure));
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

static void put_body(const pl_page *page, int64_t again_ms, pl_buffer *out)
{
    pl_buffer_text(out, "</head>\n<body>\n<main");
    if (again_ms > 0)
        pl_buffer_format(out, " data-changing=%lld", (long long)again_ms);
    pl_buffer_text(out, ">\n<h1>");
    pl_quote_html(out, page->title);
    pl_buffer_text(out, "</h1>\n");
    pl_buffer_put(out, page->note.data, page->note.bytes);
    if (page->headings > 2) {
        pl_buffer_text(out, "<nav aria-label=Contents><ul>\n");
        pl_buffer_put(out, page->contents.data, page->contents.bytes);
        pl_buffer_text(out, "</ul></nav>\n");
    }
    pl_buffer_put(out, page->body.data, page->body.bytes);
    pl_buffer_text(out, "</main>\n<script type=application/json id=model>{");
    pl_buffer_put(out, page->model.data, page->model.bytes);
    pl_buffer_text(out, page->model.bytes > 0 ? ",\n\"figures\":["
                                              : "\"figures\":[");
    pl_buffer_put(out, page->figures_json.data, page->figures_json.bytes);
    pl_buffer_text(out, "]}</script>\n");
}

void pl_page_served(const pl_page *page, int64_t again_ms, pl_buffer *out)
{
    put_head(page, "", out);
    pl_buffer_text(out, "<link rel=stylesheet href=/page.css>\n"
                        "<link rel=icon href=\"data:,\">\n");
    put_body(page, again_ms, out);
    pl_buffer_text(out, "<script src=/figures.js></script>\n"
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
    put_body(page, 0, out);
    pl_buffer_text(out, "<script>\n");
    put_asset(out, pl_asset_figures());
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
