#include "proto/event.h"

#include "base/file/file.h"
#include "support/unit.h"

#define TIME 1763200000.25

static void put_graph(pl_buffer *out)
{
    static const int64_t image[] = { -1, 28 }, labels[] = { -1 },
                         weights[] = { 10, 28 }, logits[] = { -1, 10 };
    static const char *const inputs[] = { "x", "w" };
    const char *worker = "/job:worker/task:0";
    const pl_event_node nodes[] = {
        { .name = "x",
          .op = "input",
          .device = worker,
          .sizes = image,
          .rank = 2 },
        { .name = "labels",
          .op = "input",
          .device = worker,
          .sizes = labels,
          .rank = 1,
          .integers = true },
        { .name = "w",
          .op = "parameter",
          .device = "/job:ps/task:1",
          .sizes = weights,
          .rank = 2 },
        { .name = "y",
          .op = "inner",
          .device = worker,
          .inputs = inputs,
          .input_count = 2,
          .sizes = logits,
          .rank = 2 },
    };
    pl_event_graph(out, TIME, nodes, 4);
}

static void put_all(pl_buffer *out)
{
    static const float values[] = { 1, 1.5F, 1.5F, 3 };
    pl_histogram histogram = { 0 };
    pl_histogram_add(&histogram, values, 4);
    pl_event_version(out, TIME);
    pl_event_restart(out, TIME, 500);
    pl_event_scalar(out, TIME, 501, "loss", 0.5);
    pl_event_histogram(out, TIME, 502, "weights/w", &histogram);
    put_graph(out);
    pl_event_hparams(
        out, TIME,
        (const pl_event_hparam[]) { { "batch", "100" }, { "mode", "sync" } },
        2);
    pl_event_end(out, TIME, true);
}

static void event_bytes_are_those_of_the_protocol_buffers(void **state)
{
    (void)state;
    pl_buffer out = { 0 };
    pl_map golden;
    assert_ok(pl_map_init(&golden, PL_GOLDEN "/events.tfevents"));
    put_all(&out);
    assert_ok(pl_buffer_status(&out));
    assert_int_equal(golden.bytes, out.bytes);
    assert_memory_equal(golden.data, out.data, out.bytes);
    pl_map_close(&golden);
    pl_buffer_close(&out);
}

static pl_status try_all(pl_buffer *out)
{
    put_all(out);
    pl_status status = pl_buffer_status(out);
    if (status != PL_OK)
        pl_buffer_close(out);
    return status;
}

static void event_survives_each_failed_allocation(void **state)
{
    (void)state;
    pl_buffer out = { 0 };
    assert_survives_failed_allocations(try_all(&out), pl_buffer_close(&out));
}

/* The least and the most there is, and nothing at all. */
static void event_histograms_have_any_range(void **state)
{
    (void)state;
    static const float extremes[] = { -1e38F, 0, 1e38F };
    pl_histogram all = { 0 }, none = { 0 };
    pl_histogram_add(&all, extremes, 3);
    pl_buffer out = { 0 };
    pl_event_histogram(&out, TIME, 1, "all", &all);
    size_t bytes = out.bytes;
    assert_true(bytes > 2 * PL_HISTOGRAM_BUCKETS * sizeof(double));
    pl_event_histogram(&out, TIME, 1, "none", &none);
    assert_true(out.bytes - bytes < 200);
    assert_ok(pl_buffer_status(&out));
    pl_buffer_close(&out);
}

UNIT_TESTS(cmocka_unit_test(event_bytes_are_those_of_the_protocol_buffers),
           cmocka_unit_test(event_survives_each_failed_allocation),
           cmocka_unit_test(event_histograms_have_any_range))
