/* forecast_page.c - decides which curves a plan has: a line is a strategy, mode
 * and codec, and its point at a number of workers is the row with the best
 * number of servers.  The curves over links repeat the plan at other rates. */
#include "app/plan/forecast_page.h"

#include "app/plan/units.h"
#include "app/train/memory.h"
#include "base/mem.h"

#include <stdio.h>
#include <string.h>

#define ROWS_SHOWN  40 /* of more, those with the best number of servers */
#define LINEAR_MOST 8  /* workers on linear axes */
#define LINE_BYTES  64

/* --- the table ---------------------------------------------------------- */

static void put_head(pl_table *table)
{
    static const pl_table_column columns[] = {
        { .key = "strategy" },
        { .key = "mode" },
        { .key = "workers" },
        { .key = "ps" },
        { .key = "codec" },
        { .key = "step", .unit = "ms", .digits = 2 },
        { .key = "examples_per_s", .label = "examples/s" },
        { .key = "speedup", .label = "speed-up", .digits = 2 },
        { .key = "efficiency", .unit = "%", .digits = 0 },
        { .key = "link", .label = "link/step" },
        { .key = "worker_memory", .label = "worker" },
        { .key = "server_memory", .label = "server" },
        { .key = "limit" },
    };
    for (size_t i = 0; i < sizeof columns / sizeof *columns; i++)
        pl_table_add_column(table, &columns[i]);
}

static void put_row(pl_table *table, const pl_forecast_row *row)
{
    char bytes[PL_BYTES_TEXT];
    pl_table_add_row(table);
    pl_table_put_text(table, row->strategy);
    pl_table_put_text(table, row->mode != NULL ? row->mode : "");
    pl_table_put_number(table, row->workers);
    pl_table_put_number(table, row->ps);
    pl_table_put_text(table, row->codec);
    pl_table_put_number(table, 1e3 * row->step_seconds);
    pl_table_put_number(table, row->examples_per_s);
    pl_table_put_number(table, row->speedup);
    pl_table_put_number(table, row->efficiency);
    pl_table_put_text(table, pl_memory_text(row->link_bytes, bytes));
    pl_table_put_text(table, pl_memory_text(row->worker_bytes, bytes));
    pl_table_put_text(
        table, row->ps > 0 ? pl_memory_text(row->server_bytes, bytes) : "");
    pl_table_put_text(table, row->limit);
}

static bool same_line(const pl_forecast_row *a, const pl_forecast_row *b)
{
    return a->strategy == b->strategy && a->mode == b->mode &&
           strcmp(a->codec, b->codec) == 0;
}

/* Is there a faster row with the same workers and a different number of
 * servers? */
static bool is_beaten(const pl_forecast *plan, size_t index)
{
    const pl_forecast_row *row = &plan->rows[index];
    for (size_t i = 0; i < plan->row_count; i++) {
        const pl_forecast_row *other = &plan->rows[i];
        if (i != index && same_line(other, row) &&
            other->workers == row->workers &&
            (other->examples_per_s > row->examples_per_s ||
             (other->examples_per_s == row->examples_per_s && i < index)))
            return true;
    }
    return false;
}

pl_status pl_forecast_table(pl_table **out, const pl_forecast *plan)
{
    pl_table *table;
    PL_TRY(pl_table_new(&table, "plan", "Predicted speed"));
    put_head(table);
    for (size_t i = 0; i < plan->row_count; i++)
        if (plan->row_count <= ROWS_SHOWN || !is_beaten(plan, i))
            put_row(table, &plan->rows[i]);
    *out = table;
    return PL_OK;
}

/* --- sentences ---------------------------------------------------------- */

/* The fastest row with several workers; NULL: none. */
static const pl_forecast_row *fastest_of_several(const pl_forecast *plan)
{
    const pl_forecast_row *fastest = NULL;
    for (size_t i = 0; i < plan->row_count; i++) {
        const pl_forecast_row *row = &plan->rows[i];
        if (row->workers > 1 &&
            (fastest == NULL || row->speedup > fastest->speedup))
            fastest = row;
    }
    return fastest;
}

void pl_forecast_put_none(const pl_forecast *plan, pl_buffer *out)
{
    const pl_forecast_row *row = fastest_of_several(plan);
    pl_buffer_format(out,
                     "no cluster of up to %d host%s is %.4g x as fast as one "
                     "process",
                     plan->hosts, plan->hosts == 1 ? "" : "s", plan->wanted);
    if (row != NULL)
        pl_buffer_format(out,
                         "; %s with %d workers reaches %.2f x, limited "
                         "by %s",
                         row->strategy, row->workers, row->speedup, row->limit);
}

static pl_status put_findings(pl_page *page, const pl_forecast *plan)
{
    pl_buffer lines = { 0 };
    const pl_forecast_row *best = &plan->best.row;
    pl_buffer_format(&lines,
                     "Fastest: %.0f examples/s, %.2f x one process, limit: "
                     "%s. %s\n",
                     best->examples_per_s, best->speedup, best->limit,
                     plan->best.command);
    if (plan->has_smallest)
        pl_buffer_format(&lines, "Fewest workers for %.4g x: %d. %s\n",
                         plan->wanted, plan->smallest.row.workers,
                         plan->smallest.command);
    else if (plan->has_wanted)
        pl_forecast_put_none(plan, &lines);
    pl_status status = pl_buffer_status(&lines);
    if (status == PL_OK)
        pl_page_list(page, lines.data);
    pl_buffer_close(&lines);
    return status;
}

static pl_status put_cluster(pl_page *page, const pl_forecast *plan)
{
    char rate[PL_UNITS_TEXT];
    pl_buffer line = { 0 };
    pl_buffer_format(&line,
                     "%d host%s with %d core%s each, links of %s each way, "
                     "round trips of %.4g ms; batch %lld per worker. "
                     "Predicted from a measured step, not trained.",
                     plan->hosts, plan->hosts == 1 ? "" : "s", plan->cores,
                     plan->cores == 1 ? "" : "s",
                     pl_units_rate_text(plan->link_bytes_per_s, rate),
                     1e3 * plan->round_trip_seconds, (long long)plan->batch);
    pl_status status = pl_buffer_status(&line);
    if (status == PL_OK)
        pl_page_note(page, line.data);
    pl_buffer_close(&line);
    return status;
}

/* --- curves ------------------------------------------------------------- */

typedef enum curve_of {
    SPEEDUP,
    EFFICIENCY,
    BUSIEST_LINK
} curve_of;

static double value_of(const pl_forecast_row *row, curve_of what)
{
    switch (what) {
    case SPEEDUP:
        return row->speedup;
    case EFFICIENCY:
        return 100 * row->efficiency;
    case BUSIEST_LINK:
        break;
    }
    return 1e-6 * (double)row->link_bytes;
}

static int32_t most_workers(const pl_forecast *plan)
{
    int32_t most = 1;
    for (size_t i = 0; i < plan->row_count; i++)
        if (plan->rows[i].workers > most)
            most = plan->rows[i].workers;
    return most;
}

static void name_line(const pl_forecast_row *row, char out[LINE_BYTES])
{
    bool plain = strcmp(row->codec, "plain") == 0;
    snprintf(out, LINE_BYTES, "%s%s%s%s%s", row->strategy,
             row->mode != NULL ? " " : "", row->mode != NULL ? row->mode : "",
             plain ? "" : ", ", plain ? "" : row->codec);
}

/* A single process is the first point of every line, except for bytes: it sends
 * none. */
static void add_line(pl_figure *figure, const pl_forecast *plan,
                     const pl_forecast_row *of, const char *name, curve_of what)
{
    pl_figure_add_series(figure, name, PL_FIGURE_MEASURED);
    if (what != BUSIEST_LINK)
        pl_figure_add_point(figure, 1, what == SPEEDUP ? 1 : 100, 0);
    for (size_t i = 0; i < plan->row_count; i++)
        if (same_line(&plan->rows[i], of) && !is_beaten(plan, i))
            pl_figure_add_point(figure, plan->rows[i].workers,
                                value_of(&plan->rows[i], what), 0);
}

static void add_ideal(pl_figure *figure, int32_t workers, curve_of what)
{
    pl_figure_add_series(figure, "ideal", PL_FIGURE_IDEAL);
    pl_figure_add_point(figure, 1, what == SPEEDUP ? 1 : 100, 0);
    pl_figure_add_point(figure, workers, what == SPEEDUP ? workers : 100, 0);
}

/* Is this the first row of a line with several workers? */
static bool begins_line(const pl_forecast *plan, size_t index)
{
    const pl_forecast_row *row = &plan->rows[index];
    for (size_t i = 0; i < index; i++)
        if (same_line(&plan->rows[i], row))
            return false;
    return row->workers > 1;
}

static pl_status new_figure(pl_figure **out, const pl_forecast *plan,
                            const char *name, const char *title, curve_of what)
{
    static const char *const labels[] = { "speed-up", "efficiency [%]",
                                          "busiest link [MB/step]" };
    bool many = most_workers(plan) > LINEAR_MOST;
    return pl_figure_new(out, &(pl_figure_opts) {
                                  .name = name,
                                  .title = title,
                                  .x = "workers",
                                  .y = labels[what],
                                  .log_x = many,
                                  .log_y = many && what != EFFICIENCY,
                                  .marks = true,
                              });
}

/* One line per strategy. */
static pl_status put_strategies(pl_page *page, const pl_forecast *plan,
                                const char *name, const char *title,
                                curve_of what)
{
    pl_figure *figure;
    char line[LINE_BYTES];
    PL_TRY(new_figure(&figure, plan, name, title, what));
    for (size_t i = 0; i < plan->row_count; i++)
        if (begins_line(plan, i)) {
            name_line(&plan->rows[i], line);
            add_line(figure, plan, &plan->rows[i], line, what);
        }
    if (what != BUSIEST_LINK)
        add_ideal(figure, most_workers(plan), what);
    pl_page_take_figure(page, figure);
    return PL_OK;
}

/* --- links -------------------------------------------------------------- */

static const double rates[] = { 100e6 / 8, 1e9 / 8, 10e9 / 8, 100e9 / 8, 0 };
#define RATES (sizeof rates / sizeof *rates)

/* The plan for links of each rate, and for the requested one. */
typedef struct links {
    pl_forecast plans[RATES + 1];
    size_t count;
} links;

static void close_links(links *l)
{
    for (size_t i = 0; i < l->count; i++)
        pl_forecast_close(&l->plans[i]);
}

static pl_status add_link(links *l, const pl_forecast_opts *opts, double rate)
{
    pl_forecast_opts other = *opts;
    other.link_bytes_per_s = rate;
    other.speedup = 0;
    other.no_limits = true;
    PL_TRY(pl_forecast_make(&l->plans[l->count], &other));
    l->count++;
    return PL_OK;
}

/* Slowest first; 0 means no limit. */
static pl_status make_links(links *l, const pl_forecast_opts *opts)
{
    double own = opts->link_bytes_per_s, last = 0;
    for (size_t i = 0; i < RATES; i++) {
        if (own > last && (rates[i] == 0 || own < rates[i]))
            PL_TRY(add_link(l, opts, own));
        PL_TRY(add_link(l, opts, rates[i]));
        last = rates[i];
    }
    return PL_OK;
}

/* A figure of one strategy: its speed-up over each link. */
static pl_status put_strategy(pl_page *page, const links *l,
                              const pl_forecast_row *of)
{
    pl_figure *figure;
    char line[LINE_BYTES], title[2 * LINE_BYTES], rate[PL_UNITS_TEXT];
    name_line(of, line);
    snprintf(title, sizeof title, "Speed-up of %s by link", line);
    PL_TRY(new_figure(&figure, &l->plans[0], title, title, SPEEDUP));
    for (size_t i = l->count; i-- > 0;) {
        const pl_forecast *plan = &l->plans[i];
        add_line(figure, plan, of,
                 pl_units_rate_text(plan->link_bytes_per_s, rate), SPEEDUP);
    }
    add_ideal(figure, most_workers(&l->plans[0]), SPEEDUP);
    pl_page_take_figure(page, figure);
    return PL_OK;
}

static pl_status put_links(pl_page *page, const pl_forecast *plan,
                           const pl_forecast_opts *opts)
{
    links l = { 0 };
    pl_status status = make_links(&l, opts);
    pl_page_heading(page, "Other links");
    pl_page_begin_figures(page);
    for (size_t i = 0; status == PL_OK && i < plan->row_count; i++)
        if (begins_line(plan, i))
            status = put_strategy(page, &l, &plan->rows[i]);
    pl_page_end_figures(page);
    close_links(&l);
    return status;
}

/* --- the page ----------------------------------------------------------- */

static pl_status fill(pl_page *page, const pl_forecast *plan,
                      const pl_forecast_opts *opts)
{
    pl_table *table;
    PL_TRY(put_cluster(page, plan));
    PL_TRY(put_findings(page, plan));
    if (most_workers(plan) > 1) {
        pl_page_heading(page, "Workers");
        pl_page_begin_figures(page);
        PL_TRY(put_strategies(page, plan, "speed-up", "Speed-up by workers",
                              SPEEDUP));
        PL_TRY(put_strategies(page, plan, "efficiency", "Efficiency by workers",
                              EFFICIENCY));
        PL_TRY(put_strategies(page, plan, "busiest-link",
                              "Traffic of the busiest link", BUSIEST_LINK));
        pl_page_end_figures(page);
        if (opts->hosts > 1)
            PL_TRY(put_links(page, plan, opts));
    }
    pl_page_heading(page, "All rows");
    PL_TRY(pl_forecast_table(&table, plan));
    pl_page_take_table(page, table);
    return pl_page_status(page);
}

pl_status pl_forecast_page(pl_page **out, const pl_forecast *plan,
                           const pl_forecast_opts *opts)
{
    pl_page *page;
    char title[2 * LINE_BYTES];
    snprintf(title, sizeof title, "Plan for %s", plan->model);
    PL_TRY(pl_page_new(&page, title));
    pl_status status = fill(page, plan, opts);
    if (status == PL_OK)
        *out = page;
    else
        pl_page_free(page);
    return status;
}
