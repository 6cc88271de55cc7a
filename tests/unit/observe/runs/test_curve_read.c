#include "support/unit.h"

#include "observe/runs/curve_read.h"
#include "proto/event.h"

#include <math.h>

static void assert_point(const pl_curves *curves, const char *name,
                         size_t index, double x, double y)
{
    const pl_curve *curve = pl_curves_find(curves, name);
    assert_non_null(curve);
    assert_true(index < curve->count);
    assert_true(curve->points[index].x == x);
    assert_true(curve->points[index].y == y);
}

/* Three steps of a task, started again after the first. */
static void write_events(pl_buffer *out)
{
    *out = (pl_buffer) { 0 };
    pl_event_version(out, 1);
    pl_event_scalar(out, 2, 1, "loss", 0.5);
    pl_event_scalar(out, 3, 2, "loss", 0.25);
    pl_event_scalar(out, 3, 2, "test_loss", NAN);
    pl_event_restart(out, 4, 1);
    pl_event_scalar(out, 5, 2, "loss", 0.75);
    assert_ok(pl_buffer_status(out));
}

static pl_status read_bytes(pl_curves *curves, const char *data, size_t bytes)
{
    return pl_events_read(curves, (const uint8_t *)data, bytes, "file");
}

static void our_own_event_files_are_read(void **state)
{
    (void)state;
    pl_buffer file;
    pl_curves c = { 0 };
    write_events(&file);
    assert_ok(read_bytes(&c, file.data, file.bytes));
    assert_int_equal(1, c.count);
    assert_int_equal(2, pl_curves_find(&c, "loss")->count);
    assert_point(&c, "loss", 0, 1, 0.5);
    assert_point(&c, "loss", 1, 2, 0.75);
    pl_curves_close(&c);
    pl_buffer_close(&file);
}

/* Cut in its middle, it is read from the next record on. */
static void a_piece_of_an_event_file_is_read(void **state)
{
    (void)state;
    pl_buffer file;
    size_t last = 0;
    write_events(&file);
    for (size_t cut = 0; cut < file.bytes; cut++) {
        const char *data = file.data + cut;
        pl_curves c = { 0 };
        size_t first = pl_events_first((const uint8_t *)data, file.bytes - cut);
        assert_true(cut + first >= last); /* records are not found twice */
        last = cut + first;
        assert_ok(read_bytes(&c, data + first, file.bytes - cut - first));
        if (last < file.bytes)
            assert_point(&c, "loss", pl_curves_find(&c, "loss")->count - 1, 2,
                         0.75);
        pl_curves_close(&c);
    }
    assert_int_equal(file.bytes, last);
    pl_buffer_close(&file);
}

static void a_cut_event_file_belongs_to_a_running_job(void **state)
{
    (void)state;
    pl_buffer file;
    write_events(&file);
    for (size_t bytes = 0; bytes < file.bytes; bytes++) {
        pl_curves c = { 0 };
        assert_ok(read_bytes(&c, file.data, bytes));
        pl_curves_close(&c);
    }
    pl_buffer_close(&file);
}

static void a_damaged_event_file_is_named(void **state)
{
    (void)state;
    pl_buffer file;
    pl_curves c = { 0 };
    write_events(&file);
    file.data[file.bytes - 1] ^= 1;
    assert_fails(PL_FORMAT, "file: damaged at byte",
                 read_bytes(&c, file.data, file.bytes));
    assert_int_equal(1, pl_curves_find(&c, "loss")->count);
    pl_curves_close(&c);
    file.data[0] ^= 1;
    assert_fails(PL_FORMAT, "file: damaged at byte 0",
                 read_bytes(&c, file.data, file.bytes));
    pl_curves_close(&c);
    pl_buffer_close(&file);
}

static pl_status read_text(pl_curves *c, const char *text)
{
    *c = (pl_curves) { 0 };
    pl_status status = pl_resources_read(c, text, strlen(text), "file");
    if (status != PL_OK)
        pl_curves_close(c);
    return status;
}

static void tables_of_resources_are_read(void **state)
{
    (void)state;
    pl_curves c;
    assert_ok(read_text(&c, "time,cpu,load\n100.5,1,\n101.5,2,0.25\n102,3"));
    assert_int_equal(2, c.count);
    assert_int_equal(2, pl_curves_find(&c, "cpu")->count);
    assert_point(&c, "cpu", 1, 1, 2);
    assert_int_equal(1, pl_curves_find(&c, "load")->count);
    assert_point(&c, "load", 0, 1, 0.25);
    pl_curves_close(&c);
    assert_ok(read_text(&c, "time\n1\n"));
    assert_int_equal(0, c.count);
    pl_curves_close(&c);
}

static void files_that_are_not_tables_are_reported(void **state)
{
    (void)state;
    pl_curves c;
    assert_fails(PL_FORMAT, "no header", read_text(&c, ""));
    assert_fails(PL_FORMAT, "not \"time\"", read_text(&c, "a,b\n1,2\n"));
    assert_fails(PL_FORMAT, "file:3: expected a time",
                 read_text(&c, "time,a\n1,2\nx,2\n"));
}

static void reading_survives_failed_allocations(void **state)
{
    (void)state;
    pl_curves c;
    assert_survives_failed_allocations(read_text(&c, "time,a,b\n1,2,3\n"),
                                       pl_curves_close(&c));
}

UNIT_TESTS(cmocka_unit_test(our_own_event_files_are_read),
           cmocka_unit_test(a_piece_of_an_event_file_is_read),
           cmocka_unit_test(a_cut_event_file_belongs_to_a_running_job),
           cmocka_unit_test(a_damaged_event_file_is_named),
           cmocka_unit_test(tables_of_resources_are_read),
           cmocka_unit_test(files_that_are_not_tables_are_reported),
           cmocka_unit_test(reading_survives_failed_allocations))
