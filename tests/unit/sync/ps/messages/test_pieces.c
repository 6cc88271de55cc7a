#include "sync/ps/messages/pieces.h"

#include "support/unit.h"

static void pieces_shards_cover_the_block_without_overlap(void **state)
{
    (void)state;
    for (int32_t servers = 1; servers <= 7; servers++) {
        int64_t next = 0;
        for (int32_t j = 0; j < servers; j++) {
            int64_t first, count;
            pl_pieces_shard(1000, servers, j, &first, &count);
            assert_int_equal(next, first);
            assert_true(count > 0);
            assert_int_equal(0, first % 16);
            next = first + count;
        }
        assert_int_equal(1000, next);
    }
}

static void pieces_are_found_by_their_place_alone(void **state)
{
    (void)state;
    pl_pieces pieces;
    assert_ok(pl_pieces_init(&pieces, 100, 50, 16, 2));
    pl_pieces_reset(&pieces, 2);
    assert_int_equal(8, pl_pieces_total(&pieces));
    for (int32_t i = 0; i < 8; i++) {
        pl_piece_range range = pl_pieces_range(&pieces, i);
        assert_int_equal(
            i, pl_pieces_find(&pieces, range.plane, range.first, range.count));
    }
    assert_int_equal(-1, pl_pieces_find(&pieces, 0, 99, 16));
    assert_int_equal(-1, pl_pieces_find(&pieces, 0, 101, 16));
    assert_int_equal(-1, pl_pieces_find(&pieces, 0, 148, 16));
    assert_int_equal(-1, pl_pieces_find(&pieces, 0, 164, 16));
    assert_int_equal(-1, pl_pieces_find(&pieces, 2, 100, 16));
    assert_int_equal(-1, pl_pieces_find(&pieces, -1, 100, 16));
    pl_pieces_close(&pieces);
    assert_int_equal(0, pl_mem_live());
}

static void pieces_have_what_arrived(void **state)
{
    (void)state;
    pl_pieces pieces;
    assert_ok(pl_pieces_init(&pieces, 100, 50, 16, 1));
    pl_pieces_reset(&pieces, 1);
    assert_true(pl_pieces_mark(&pieces, 1));
    assert_false(pl_pieces_mark(&pieces, 1));
    assert_true(pl_pieces_have(&pieces, 116, 16));
    assert_false(pl_pieces_have(&pieces, 115, 2));
    assert_false(pl_pieces_have(&pieces, 131, 2));
    assert_true(pl_pieces_have(&pieces, 120, 4));
    for (int32_t i = 0; i < 4; i++)
        pl_pieces_mark(&pieces, i);
    assert_true(pl_pieces_complete(&pieces));
    assert_true(pl_pieces_have(&pieces, 0, 1000));
    pl_pieces_close(&pieces);
}

static void stream_keeps_to_its_window(void **state)
{
    (void)state;
    pl_stream stream;
    assert_ok(pl_stream_init(&stream, 0, 20 * 4, 4, 1));
    pl_stream_start(&stream, 1, false);
    int32_t sent = 0;
    for (; pl_stream_next(&stream) >= 0; sent++)
        ;
    assert_int_equal(PL_PIECE_WINDOW, sent);
    pl_stream_ack(&stream, 3);
    assert_int_equal(PL_PIECE_WINDOW, pl_stream_next(&stream));
    assert_int_equal(-1, pl_stream_next(&stream));
    pl_stream_retry(&stream); /* piece 3 is not sent again */
    int32_t again[PL_PIECE_WINDOW];
    for (int i = 0; i < PL_PIECE_WINDOW; i++)
        again[i] = pl_stream_next(&stream);
    assert_int_equal(2, again[2]);
    assert_int_equal(4, again[3]);
    pl_stream_close(&stream);
}

static void stream_of_a_gradient_starts_at_the_end_and_waits(void **state)
{
    (void)state;
    pl_stream stream;
    assert_ok(pl_stream_init(&stream, 0, 16, 4, 1));
    pl_stream_start(&stream, 1, true);
    assert_int_equal(-1, pl_stream_next(&stream));
    stream.ready_from = 9;
    assert_int_equal(3, pl_stream_next(&stream));
    assert_int_equal(-1, pl_stream_next(&stream)); /* piece 2 begins at 8 */
    stream.ready_from = 0;
    assert_int_equal(2, pl_stream_next(&stream));
    assert_int_equal(1, pl_stream_next(&stream));
    assert_int_equal(0, pl_stream_next(&stream));
    assert_int_equal(-1, pl_stream_next(&stream));
    pl_stream_close(&stream);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_shards_cover_the_block_without_overlap),
        cmocka_unit_test(pieces_are_found_by_their_place_alone),
        cmocka_unit_test(pieces_have_what_arrived),
        cmocka_unit_test(stream_keeps_to_its_window),
        cmocka_unit_test(stream_of_a_gradient_starts_at_the_end_and_waits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
