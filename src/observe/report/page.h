/* page.h - a report as one HTML page, and its tables and figures as files.
 *
 * The page holds everything: its scripts and its style are in it, and its
 * content security policy lets no request leave.
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

/* What comes next on the page; texts are escaped.  A heading is also an entry
 * of the contents. */
void pl_page_heading(pl_page *page, const char *text);
void pl_page_text(pl_page *page, const char *text);
/* Sentences, a line each, as a list. */
void pl_page_list(pl_page *page, const char *lines);
/* Figures that zoom together stand between these. */
void pl_page_begin_figures(pl_page *page);
void pl_page_end_figures(pl_page *page);
/* Where page.js shows which runs are on, and where the reader makes figures of
 * his own. */
void pl_page_display(pl_page *page);
void pl_page_explorer(pl_page *page);
/* Where the reader picks the run that the figures behind it show; page.js knows
 * what for.  `run`: the one at first. */
void pl_page_chooser(pl_page *page, const char *what, size_t run);
/* A part that is folded until the reader opens it. */
void pl_page_fold(pl_page *page, const char *title);
void pl_page_unfold(pl_page *page);
/* Both are the page's from here on; one without rows or points is not
 * shown. */
void pl_page_take_table(pl_page *page, pl_table *table);
void pl_page_take_figure(pl_page *page, pl_figure *figure);
/* A figure of another kind, which drawings.js knows by this name and draws from
 * the model and from `members` of its own (",\"key\":value" each). */
void pl_page_drawing(pl_page *page, const char *name, const char *title,
                     const pl_buffer *members);
/* What figures are drawn from: the members of a JSON object. */
pl_buffer *pl_page_model(pl_page *page);

/* A line below the title. */
void pl_page_note(pl_page *page, const char *text);
/* Below the title, a link to the page that this one belongs to. */
void pl_page_back(pl_page *page, const char *href, const char *text);
/* HTML that is made already: on the page, or below its title. */
void pl_page_part(pl_page *page, const pl_buffer *html);
void pl_page_head_part(pl_page *page, const pl_buffer *html);

/* Append the page. */
void pl_page_html(const pl_page *page, pl_buffer *out);
/* Append it for a server that also has /page.css, /figures.js, /page.js and
 * /live.js.  After again_ms it asks for itself again; 0: nothing changes. */
void pl_page_served(const pl_page *page, int64_t again_ms, pl_buffer *out);

/* Write each table as <folder>/<name>.csv. */
pl_status pl_page_write_tables(const pl_page *page,
                               const char *folder) PL_MUST_CHECK;
/* Append commands for gnuplot that write each figure as <name>.svg. */
void pl_page_gnuplot(const pl_page *page, pl_buffer *out);
size_t pl_page_tables(const pl_page *page);
size_t pl_page_figures(const pl_page *page);

#endif
