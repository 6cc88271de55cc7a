#include "support/unit.h"

#include "observe/runs/graph_read.h"
#include "proto/event.h"

/* A parameter of server 1 and the operator of a worker that reads it. */
static void write_file(pl_buffer *out)
{
    static const char *const inputs[] = { "dense/weights" };
    static const int64_t weights[] = { 784, 10 }, result[] = { -1, 10 };
    const pl_event_node nodes[] = {
        { .name = "dense/weights",
          .op = "parameter",
          .device = "/job:ps/task:1",
          .sizes = weights,
          .rank = 2 },
        { .name = "dense \"1\"",
          .op = "inner",
          .device = "/job:worker/task:0",
          .inputs = inputs,
          .input_count = 1,
          .sizes = result,
          .rank = 2 },
    };
    *out = (pl_buffer) { 0 };
    pl_event_version(out, 1);
    pl_event_scalar(out, 2, 1, "loss", 0.5);
    pl_event_graph(out, 3, nodes, 2);
    pl_event_scalar(out, 4, 2, "loss", 0.25);
    assert_ok(pl_buffer_status(out));
}

static pl_status read_bytes(const pl_buffer *file, size_t bytes, pl_buffer *out)
{
    return pl_graph_read((const uint8_t *)file->data, bytes, out);
}

static void a_recorded_graph_is_read(void **state)
{
    (void)state;
    pl_buffer file, text = { 0 };
    write_file(&file);
    assert_ok(read_bytes(&file, file.bytes, &text));
    assert_string_equal(
        "[[\"dense/weights\",\"parameter\",\"/job:ps/task:1\",[784,10],[]],\n"
        "[\"dense \\u00221\\u0022\",\"inner\",\"/job:worker/task:0\",[-1,10],"
        "[\"dense/weights\"]]]",
        text.data);
    pl_buffer_close(&text);
    pl_buffer_close(&file);
}

/* A file that is still being written, or damaged, never crashes the reader. */
static void a_cut_or_damaged_file_is_survived(void **state)
{
    (void)state;
    pl_buffer file, text = { 0 };
    write_file(&file);
    assert_int_equal(PL_NOTFOUND, read_bytes(&file, 0, &text));
    assert_int_equal(PL_NOTFOUND, read_bytes(&file, 40, &text));
    for (size_t at = 0; at < file.bytes; at++) {
        char old = file.data[at];
        file.data[at] = (char)(old ^ 0x55);
        (void)read_bytes(&file, file.bytes, &text);
        (void)read_bytes(&file, at, &text);
        file.data[at] = old;
        pl_buffer_close(&text);
    }
    pl_buffer_close(&file);
}

UNIT_TESTS(cmocka_unit_test(a_recorded_graph_is_read),
           cmocka_unit_test(a_cut_or_damaged_file_is_survived))
