/* One bounded array of spans for each thread; full arrays count what they
 * drop. */
#include "base/record/trace.h"

#include "base/assert.h"
#include "base/mem.h"

#include <stdatomic.h>

#define ROOM_DEFAULT 65536

/* Written by one thread only, so on cache lines of its own. */
struct lane {
    _Alignas(PL_CACHE_LINE) pl_span *spans; /* room of them */
    uint32_t count;
    uint64_t dropped;
};

struct pl_trace {
    _Atomic bool on;
    int32_t lane_count;
    uint32_t room;
    uint64_t begin;
    int64_t begin_wall_ns;
    struct lane lanes[];
};

static pl_trace_opts resolve(const pl_trace_opts *opts)
{
    pl_trace_opts resolved = *opts;
    PL_ASSERT(resolved.lanes >= 1);
    if (resolved.room == 0)
        resolved.room = ROOM_DEFAULT;
    return resolved;
}

pl_status pl_trace_new(pl_trace **out, const pl_trace_opts *opts)
{
    pl_trace_opts wanted = resolve(opts);
    size_t bytes =
        sizeof(pl_trace) + (size_t)wanted.lanes * sizeof(struct lane);
    pl_trace *trace = pl_mem_alloc_aligned(1, bytes);
    PL_TRY(pl_mem_check(trace, 1, bytes));
    trace->room = wanted.room;
    for (int32_t i = 0; i < wanted.lanes; i++) {
        pl_status status = PL_NEW(trace->lanes[i].spans, wanted.room);
        if (status != PL_OK) {
            pl_trace_free(trace);
            return pl_context(status, "trace of %d lanes", wanted.lanes);
        }
        trace->lane_count = i + 1;
    }
    trace->begin = pl_ticks_now();
    trace->begin_wall_ns = pl_clock_wall_ns();
    *out = trace;
    return PL_OK;
}

void pl_trace_free(pl_trace *trace)
{
    if (trace == NULL)
        return;
    for (int32_t i = 0; i < trace->lane_count; i++)
        pl_mem_free(trace->lanes[i].spans);
    pl_mem_free(trace);
}

void pl_trace_switch(pl_trace *trace, bool on)
{
    atomic_store_explicit(&trace->on, on, memory_order_relaxed);
}

bool pl_trace_on(const pl_trace *trace)
{
    return trace != NULL &&
           atomic_load_explicit(&trace->on, memory_order_relaxed);
}

static const struct lane *lane_at(const pl_trace *trace, int lane)
{
    PL_ASSERT(lane >= 0 && lane < trace->lane_count);
    return &trace->lanes[lane];
}

void pl_trace_span(pl_trace *trace, int lane, const char *name, int64_t step,
                   uint64_t begin, uint64_t end)
{
    pl_trace_moved(trace, lane, name, step, begin, end, 0);
}

void pl_trace_moved(pl_trace *trace, int lane, const char *name, int64_t step,
                    uint64_t begin, uint64_t end, int64_t bytes)
{
    if (!pl_trace_on(trace))
        return;
    PL_ASSERT(lane >= 0 && lane < trace->lane_count);
    struct lane *mine = &trace->lanes[lane];
    if (mine->count == trace->room) {
        mine->dropped++;
        return;
    }
    mine->spans[mine->count++] = (pl_span) { name, begin, end, step, bytes };
}

int pl_trace_lanes(const pl_trace *trace)
{
    return trace->lane_count;
}

uint32_t pl_trace_count(const pl_trace *trace, int lane)
{
    return lane_at(trace, lane)->count;
}

const pl_span *pl_trace_get(const pl_trace *trace, int lane, uint32_t index)
{
    PL_ASSERT(index < lane_at(trace, lane)->count);
    return &lane_at(trace, lane)->spans[index];
}

uint64_t pl_trace_dropped(const pl_trace *trace)
{
    uint64_t dropped = 0;
    for (int i = 0; i < trace->lane_count; i++)
        dropped += trace->lanes[i].dropped;
    return dropped;
}

uint64_t pl_trace_begin(const pl_trace *trace)
{
    return trace->begin;
}

int64_t pl_trace_begin_wall_ns(const pl_trace *trace)
{
    return trace->begin_wall_ns;
}
