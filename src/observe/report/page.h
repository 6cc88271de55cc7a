/* page.h - a report as one HTML page, and its tables and figures as files.
 *
 * The page holds everything: its script, its style and a chart library are in
 * it, and its content security policy lets no request leave.
 *
 * What fails for want of memory is remembered, and pl_page_status tells.
 *
 * Threads: one at a time. */
#ifndef PL_OBSERVE_REPORT_PAGE_H
#define PL_OBSERVE_REPORT_PAGE_H

#include "observe/report/figure/figure.h"
#include "observe/runs/table.h"

typedef struct pl_page pl_page;

pl_status pl_page_new(pl_page **out, const char *title) PL_MUST_CHECK;
void pl_page_free(pl_page *page); /* NULL is fine */
pl_status pl_page_status(const pl_page *page) PL_MUST_CHECK;

/* What comes next on the page; texts are escaped. */
void pl_page_heading(pl_page *page, const char *text);
void pl_page_text(pl_page *page, const char *text);
/* A part that is folded until somebody opens it. */
void pl_page_fold(pl_page *page, const char *title);
void pl_page_unfold(pl_page *page);
/* Both are the page's from here on; one without rows or points is not
 * shown. */
void pl_page_take_table(pl_page *page, pl_table *table);
void pl_page_take_figure(pl_page *page, pl_figure *figure);

/* A line below the title. */
void pl_page_note(pl_page *page, const char *text);
/* A text as it is, its lines and spaces kept. */
void pl_page_lines(pl_page *page, const char *text);
/* A paragraph that leads to another page, and what is said of it. */
void pl_page_link(pl_page *page, const char *href, const char *text,
                  const char *note);

/* Append the page. */
void pl_page_html(const pl_page *page, pl_buffer *out);
/* Append it for a server that also has /page.css, /page.js, /live.js and
 * /chart.js.  While something may still change, it asks for itself again. */
void pl_page_served(const pl_page *page, bool changing, pl_buffer *out);

/* Write each table as <folder>/<name>.csv. */
pl_status pl_page_write_tables(const pl_page *page,
                               const char *folder) PL_MUST_CHECK;
/* Append commands for gnuplot that write each figure as <name>.svg. */
void pl_page_gnuplot(const pl_page *page, pl_buffer *out);
size_t pl_page_tables(const pl_page *page);
size_t pl_page_figures(const pl_page *page);

#endif
