/* page.h - a report as one HTML page, and its tables and figures as files.
 *
 * The page is self-contained: it includes its scripts and its style, and its
 * content security policy blocks all requests.
 *
 * If memory runs out, that is remembered; see pl_page_status.
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

/* Append to the page; texts are escaped.  A heading is also an entry of the
 * contents. */
void pl_page_heading(pl_page *page, const char *text);
void pl_page_text(pl_page *page, const char *text);
/* Sentences, one per line, as a list. */
void pl_page_list(pl_page *page, const char *lines);
/* Figures between these calls zoom together. */
void pl_page_begin_figures(pl_page *page);
void pl_page_end_figures(pl_page *page);
/* Where page.js shows the choice of runs and the figures that the reader
 * makes. */
void pl_page_display(pl_page *page);
void pl_page_explorer(pl_page *page);
/* Where the reader selects the run that the following figures show, for the
 * purpose `what`, known to page.js.  `run`: the initial one. */
void pl_page_chooser(pl_page *page, const char *what, size_t run);
/* A section that is folded until the reader opens it. */
void pl_page_fold(pl_page *page, const char *title);
void pl_page_unfold(pl_page *page);
/* The page takes ownership; tables without rows and figures without points are
 * not shown. */
void pl_page_take_table(pl_page *page, pl_table *table);
void pl_page_take_figure(pl_page *page, pl_figure *figure);
/* A figure of another kind, which drawings.js or execution.js draws by this
 * name from the model and from `members` (",\"key\":value" each). */
void pl_page_drawing(pl_page *page, const char *name, const char *title,
                     const pl_buffer *members);
/* The data of figures: the members of a JSON object. */
pl_buffer *pl_page_model(pl_page *page);

/* A line below the title. */
void pl_page_note(pl_page *page, const char *text);
/* Below the title, a link to the page to which this one belongs. */
void pl_page_back(pl_page *page, const char *href, const char *text);
/* Ready HTML: on the page, or below its title. */
void pl_page_part(pl_page *page, const pl_buffer *html);
void pl_page_head_part(pl_page *page, const pl_buffer *html);

/* Append the page. */
void pl_page_html(const pl_page *page, pl_buffer *out);
/* Append it for a server that also has /page.css, /figures.js, /page.js and
 * /live.js.  The page requests itself again after again_ms; 0: never. */
void pl_page_served(const pl_page *page, int64_t again_ms, pl_buffer *out);

/* Write each table as <folder>/<name>.csv. */
pl_status pl_page_write_tables(const pl_page *page,
                               const char *folder) PL_MUST_CHECK;
/* Append commands for gnuplot that write each figure as <name>.svg. */
void pl_page_gnuplot(const pl_page *page, pl_buffer *out);
size_t pl_page_tables(const pl_page *page);
size_t pl_page_figures(const pl_page *page);

#endif
