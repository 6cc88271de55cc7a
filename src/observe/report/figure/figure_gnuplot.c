/* figure_gnuplot.c - a figure as commands for gnuplot, which can run programs.
 * The commands contain names of flags, runs and hosts, so every text, including
 * the name of the output file, goes through pl_quote_gnuplot; the rest are
 * numbers. */
#include "base/text/quote.h"
#include "observe/report/figure/figure_priv.h"

#include <math.h>

#define WIDTH  960
#define HEIGHT 540
#define MANY   12 /* names on the x axis from which they are vertical */

static void put_labels(const pl_figure *figure, pl_buffer *out)
{
    pl_buffer_format(out,
                     "reset\nset terminal svg size %d,%d noenhanced "
                     "background 'white' font 'sans-serif,14'\n"
                     "set output ",
                     WIDTH, HEIGHT);
    pl_quote_gnuplot(out, figure->name);
    pl_buffer_text(out, ".'.svg'\nset title ");
    pl_quote_gnuplot(out, figure->title);
    pl_buffer_text(out, "\nset xlabel ");
    pl_quote_gnuplot(out, figure->x);
    pl_buffer_text(out, "\nset ylabel ");
    pl_quote_gnuplot(out, figure->y);
    pl_buffer_format(out,
                     "\nset key outside right top\nset grid\nset border 3\n"
                     "set tics nomirror\n%s%s",
                     figure->log_x ? "set logscale x\n" : "",
                     figure->log_y ? "set logscale y\n" : "");
}

static bool has_spread(const pl_figure_series *series)
{
    for (size_t i = 0; i < series->count; i++)
        if (series->points[i].spread > 0)
            return true;
    return false;
}

static void put_lines(const pl_figure *figure, pl_buffer *out)
{
    for (size_t i = 0; i < figure->series_count; i++) {
        const pl_figure_series *series = &figure->series[i];
        pl_buffer_format(out, "$s%zu << EOD\n", i);
        for (size_t p = 0; p < series->count; p++)
            pl_buffer_format(out, "%.10g %.10g %.10g\n", series->points[p].x,
                             series->points[p].y, series->points[p].spread);
        pl_buffer_text(out, "EOD\n");
    }
    pl_buffer_text(out, "plot ");
    const char *comma = "";
    for (size_t i = 0; i < figure->series_count; i++) {
        const pl_figure_series *series = &figure->series[i];
        if (series->count == 0)
            continue;
        pl_buffer_format(out, "%s$s%zu using %s with %s lw 2 title ", comma, i,
                         has_spread(series) ? "1:2:3" : "1:2",
                         has_spread(series) ? "yerrorlines"
                         : figure->marks    ? "linespoints"
                                            : "lines");
        pl_quote_gnuplot(out, series->name);
        comma = ", ";
    }
    pl_buffer_text(out, "\n");
}

/* NAN: the series has no bar there. */
static double bar_at(const pl_figure_series *series, size_t category)
{
    for (size_t i = 0; i < series->count; i++)
        if (series->points[i].x == (double)category)
            return series->points[i].y;
    return NAN;
}

static void put_bars(const pl_figure *figure, pl_buffer *out)
{
    pl_buffer_text(out, "$bars << EOD\n");
    for (size_t c = 0; c < figure->category_count; c++) {
        pl_buffer_format(out, "%zu", c);
        for (size_t i = 0; i < figure->series_count; i++) {
            double bar = bar_at(&figure->series[i], c);
            pl_buffer_format(out, isnan(bar) ? " 0" : " %.10g", bar);
        }
        pl_buffer_text(out, "\n");
    }
    pl_buffer_format(
        out,
        "EOD\nset style data histograms\nset style histogram %s\n"
        "set style fill solid 0.9 border -1\nset boxwidth 0.85\n"
        "set yrange [0:*]\nset xtics %s(",
        figure->kind == PL_FIGURE_STACKED ? "rowstacked" : "clustered gap 1",
        figure->category_count > MANY ? "rotate by 90 right " : "");
    for (size_t c = 0; c < figure->category_count; c++) {
        pl_buffer_text(out, c > 0 ? "," : "");
        pl_quote_gnuplot(out, figure->categories[c].name);
        pl_buffer_format(out, " %zu", c);
    }
    pl_buffer_text(out, ")\nplot ");
    for (size_t i = 0; i < figure->series_count; i++) {
        pl_buffer_format(out, "%s$bars using %zu title ", i > 0 ? ", " : "",
                         i + 2);
        pl_quote_gnuplot(out, figure->series[i].name);
    }
    pl_buffer_text(out, "\n");
}

void pl_figure_gnuplot(const pl_figure *figure, pl_buffer *out)
{
    if (pl_figure_is_empty(figure))
        return;
    put_labels(figure, out);
    if (figure->kind == PL_FIGURE_LINES || figure->kind == PL_FIGURE_CURVES)
        put_lines(figure, out);
    else
        put_bars(figure, out);
}
