#include "observe/event.h"

#include "base/file.h"
#include "support/unit.h"

#define TIME 1763200000.25

static void put_graph(pl_wire *wire)
{
    static const int64_t image[] = { -1, 28 }, labels[] = { -1 },
                         weights[] = { 10, 28 }, out[] = { -1, 10 };
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
          .sizes = out,
          .rank = 2 },
    };
    pl_event_graph(wire, TIME, nodes, 4);
}

static void put_all(pl_wire *wire)
{
    static const float values[] = { 1, 1.5F, 1.5F, 3 };
    pl_histogram histogram = { 0 };
    pl_histogram_add(&histogram, values, 4);
    pl_event_version(wire, TIME);
    pl_event_restart(wire, TIME, 500);
    pl_event_scalar(wire, TIME, 501, "loss", 0.5);
    pl_event_histogram(wire, TIME, 502, "weights/w", &histogram);
    put_graph(wire);
    pl_event_hparams(
        wire, TIME,
        (const pl_event_hparam[]) { { "batch", "100" }, { "mode", "sync" } },
        2);
    pl_event_end(wire, TIME, true);
}

static void event_bytes_are_those_of_the_protocol_buffers(void **state)
{
    (void)state;
    pl_wire wire = { 0 };
    pl_map golden;
    assert_ok(pl_map_init(&golden, PL_GOLDEN "/events.tfevents"));
    put_all(&wire);
    assert_ok(pl_wire_status(&wire));
    assert_int_equal(golden.bytes, wire.bytes);
    assert_memory_equal(golden.data, wire.data, wire.bytes);
    pl_map_close(&golden);
    pl_wire_close(&wire);
}

static pl_status try_all(pl_wire *wire)
{
    put_all(wire);
    pl_status status = pl_wire_status(wire);
    if (status != PL_OK)
        pl_wire_close(wire);
    return status;
}

static void event_survives_each_failed_allocation(void **state)
{
    (void)state;
    pl_wire wire = { 0 };
    assert_survives_failed_allocations(try_all(&wire), pl_wire_close(&wire));
}

/* The least and the most there is, and nothing at all. */
static void event_histograms_have_any_range(void **state)
{
    (void)state;
    static const float extremes[] = { -1e38F, 0, 1e38F };
    pl_histogram all = { 0 }, none = { 0 };
    pl_histogram_add(&all, extremes, 3);
    pl_wire wire = { 0 };
    pl_event_histogram(&wire, TIME, 1, "all", &all);
    size_t bytes = wire.bytes;
    assert_true(bytes > 2 * PL_HISTOGRAM_BUCKETS * sizeof(double));
    pl_event_histogram(&wire, TIME, 1, "none", &none);
    assert_true(wire.bytes - bytes < 200);
    assert_ok(pl_wire_status(&wire));
    pl_wire_close(&wire);
}

UNIT_TESTS(cmocka_unit_test(event_bytes_are_those_of_the_protocol_buffers),
           cmocka_unit_test(event_survives_each_failed_allocation),
           cmocka_unit_test(event_histograms_have_any_range))
