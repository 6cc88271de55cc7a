#include "support/unit.h"

#include "proto/tf_example.h"

static pl_tf_list named(const char *name)
{
    return (pl_tf_list) { .name = name, .name_bytes = strlen(name) };
}

static void examples_read_as_they_were_written(void **state)
{
    (void)state;
    uint64_t ids[40];
    float values[40];
    uint8_t bytes[2048];
    for (size_t count = 0; count <= 40; count++) {
        for (size_t i = 0; i < count; i++) {
            ids[i] = ((uint64_t)1 << (i * 63 / 40)) - i % 2;
            values[i] = (float)i - 3.5f;
        }
        pl_tf_example example = { "l", "a longer name", "v",  1,
                                  ids, values,          count };
        assert_true(pl_tf_example_room(&example) <= sizeof bytes);
        size_t used = pl_tf_example_write(&example, bytes);
        assert_true(used <= pl_tf_example_room(&example));

        pl_tf_list lists[] = { named("l"), named("a longer name"), named("v"),
                               named("none") };
        int64_t ints[2048];
        float floats[512];
        size_t found;
        assert_ok(pl_tf_example_find(bytes, used, lists, 4));
        assert_int_equal(PL_TF_INTS, lists[0].kind);
        assert_int_equal(PL_TF_FLOATS, lists[2].kind);
        assert_int_equal(PL_TF_NONE, lists[3].kind);
        assert_ok(pl_tf_list_ints(&lists[0], ints, &found));
        assert_int_equal(1, found);
        assert_int_equal(1, ints[0]);
        assert_ok(pl_tf_list_ints(&lists[1], ints, &found));
        assert_int_equal(count, found);
        assert_memory_equal(ids, ints, count * sizeof *ids);
        assert_ok(pl_tf_list_floats(&lists[2], floats, &found));
        assert_int_equal(count, found);
        assert_memory_equal(values, floats, count * sizeof *values);
        for (size_t cut = 1; cut < used; cut++)
            assert_int_equal(PL_FORMAT,
                             pl_tf_example_find(bytes, cut, lists, 4));
    }
}

/* An Int64List of elements that are not packed, of packed ones, of both. */
static void both_ways_to_pack_are_read(void **state)
{
    (void)state;
    static const uint8_t bytes[] = { 0x08, 5,    0x0a, 3,    0xac, 0x02, 7,
                                     0x08, 0xff, 0xff, 0x03, 0x12, 1,    9 };
    pl_tf_list list = { .kind = PL_TF_INTS,
                        .data = bytes,
                        .bytes = sizeof bytes };
    int64_t ints[sizeof bytes];
    size_t count;
    assert_ok(pl_tf_list_ints(&list, ints, &count));
    assert_int_equal(4, count);
    assert_int_equal(5, ints[0]);
    assert_int_equal(300, ints[1]);
    assert_int_equal(7, ints[2]);
    assert_int_equal(65535, ints[3]);

    static const uint8_t single[] = { 0x0d, 0, 0, 0x80, 0x3f, 0x0a,
                                      4,    0, 0, 0,    0x40 };
    float floats[2];
    list.data = single;
    list.bytes = sizeof single;
    assert_ok(pl_tf_list_floats(&list, floats, &count));
    assert_int_equal(2, count);
    assert_true(floats[0] == 1 && floats[1] == 2);
}

static void negative_and_overlong_integers(void **state)
{
    (void)state;
    static const uint8_t minus[] = { 0x0a, 10,   0xff, 0xff, 0xff, 0xff,
                                     0xff, 0xff, 0xff, 0xff, 0xff, 0x01 };
    uint8_t long_one[sizeof minus];
    pl_tf_list list = { .kind = PL_TF_INTS,
                        .data = minus,
                        .bytes = sizeof minus };
    int64_t ints[sizeof minus];
    size_t count;
    assert_ok(pl_tf_list_ints(&list, ints, &count));
    assert_int_equal(1, count);
    assert_true(ints[0] == -1);
    memcpy(long_one, minus, sizeof minus);
    long_one[11] = 0x02;
    list.data = long_one;
    assert_fails(PL_FORMAT, "ends inside",
                 pl_tf_list_ints(&list, ints, &count));
}

static void the_last_of_a_key_counts_and_unknown_fields_are_skipped(
    void **state)
{
    (void)state;
    /* Two entries "k" with 1 and 2, between them a group of unknown fields. */
    static const uint8_t bytes[] = {
        0x0a, 26,   0x0a, 10, 0x0a, 1, 'k', 0x12, 5, 0x1a, 3, 0x0a, 1, 1, 0x10,
        0x96, 0x01, 0x0a, 10, 0x0a, 1, 'k', 0x12, 5, 0x1a, 3, 0x0a, 1, 2, 0x15,
        1,    2,    3,    4,  0x19, 1, 2,   3,    4, 5,    6, 7,    8
    };
    pl_tf_list list = named("k");
    int64_t ints[8];
    size_t count;
    uint8_t fixed[sizeof bytes];
    memcpy(fixed, bytes, sizeof bytes);
    fixed[1] = 27;
    assert_ok(pl_tf_example_find(fixed, sizeof fixed, &list, 1));
    assert_int_equal(PL_TF_INTS, list.kind);
    assert_ok(pl_tf_list_ints(&list, ints, &count));
    assert_int_equal(1, count);
    assert_int_equal(2, ints[0]);
    fixed[29] = 0x17; /* wire type 7 */
    assert_fails(PL_FORMAT, "wire type 7",
                 pl_tf_example_find(fixed, sizeof fixed, &list, 1));
}

UNIT_TESTS(
    cmocka_unit_test(examples_read_as_they_were_written),
    cmocka_unit_test(both_ways_to_pack_are_read),
    cmocka_unit_test(negative_and_overlong_integers),
    cmocka_unit_test(the_last_of_a_key_counts_and_unknown_fields_are_skipped))
