/* graph.c - the model's graph, each operator on its device, for the run that
 * the reader selects; runs with the same graph share one. */
#include "base/error.h"
#include "base/mem.h"
#include "observe/report/report_priv.h"
#include "observe/runs/graph_read.h"

#include <string.h>

#define GRAPHS_MOST 8

typedef struct graphs {
    pl_buffer list[GRAPHS_MOST];
    size_t runs[GRAPHS_MOST];
    size_t count;
} graphs;

static bool is_known(const graphs *g, const pl_buffer *graph)
{
    for (size_t i = 0; i < g->count; i++)
        if (g->list[i].bytes == graph->bytes &&
            memcmp(g->list[i].data, graph->data, graph->bytes) == 0)
            return true;
    return false;
}

static pl_status collect(const pl_report *report, graphs *g)
{
    for (size_t i = 0; i < report->records->count && g->count < GRAPHS_MOST;
         i++) {
        const char *path = report->records->list[i].path;
        pl_buffer *own = &g->list[g->count];
        pl_status status = pl_graph_of_run(path, own);
        if (status == PL_NOMEM)
            return status;
        if (status == PL_OK && !is_known(g, own))
            g->runs[g->count++] = i;
        else
            pl_buffer_close(own);
    }
    return PL_OK;
}

static void put(pl_report *report, const graphs *g)
{
    pl_buffer none = { 0 };
    pl_buffer_text(&report->more, ",\n\"graphs\":[");
    for (size_t i = 0; i < g->count; i++) {
        pl_buffer_format(&report->more,
                         "%s{\"run\":%zu,\"nodes\":", i > 0 ? ",\n" : "",
                         g->runs[i]);
        pl_buffer_put(&report->more, g->list[i].data, g->list[i].bytes);
        pl_buffer_text(&report->more, "}");
    }
    pl_buffer_text(&report->more, "]");
    pl_page_heading(report->page, "Model");
    pl_page_chooser(report->page, "modelled", g->runs[0]);
    pl_page_begin_figures(report->page);
    pl_page_drawing(report->page, "graph", "The model by device", &none);
    pl_page_end_figures(report->page);
}

pl_status pl_report_graph(pl_report *report)
{
    graphs g = { 0 };
    pl_status status = collect(report, &g);
    if (status == PL_OK && g.count > 0)
        put(report, &g);
    for (size_t i = 0; i < GRAPHS_MOST; i++)
        pl_buffer_close(&g.list[i]);
    return status;
}
