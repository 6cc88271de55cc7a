/* Messages out of bytes: in reads of any size, plain and encrypted, and what
 * an announced length costs.
 *
 * Invariants and the tests that check them:
 *   decoder S1  decoder_takes_reads_of_any_size
 *   decoder S2  decoder_grows_with_what_arrives */
#include "net/tcp/decoder.h"
#include "net/tcp/outbox.h"
#include "support/unit.h"

#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

static const uint8_t key[PL_SESSION_KEY_BYTES] = { 1, 2, 3 };
static const size_t sizes[] = { 0, 1, 8, 1000, 65536, 65537, 300000 };
#define SIZES (sizeof sizes / sizeof *sizes)

/* What the outbox makes of a message of each size. */
static size_t encode(uint8_t *out, bool sealed)
{
    static uint8_t payload[300000];
    pl_outbox outbox = { .count = 0 };
    pl_mutex lock;
    pl_cipher *cipher = NULL;
    int ends[2];
    size_t total = 0;
    for (size_t i = 0; i < sizeof payload; i++)
        payload[i] = (uint8_t)(i * 7);
    pl_mutex_init(&lock);
    if (sealed)
        assert_ok(pl_cipher_new(&cipher, key, true));
    pl_outbox_use(&outbox, cipher);
    assert_int_equal(0,
                     socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends));
    for (size_t i = 0; i < SIZES; i++) {
        pl_frame frame = { .kind = PL_FRAME_PUSH,
                           .sequence = i,
                           .payload_bytes = (uint32_t)sizes[i] };
        pl_outgoing message;
        pl_outgoing_init(&message, &frame, payload);
        assert_ok(pl_outbox_put(&outbox, &message, i % 2 == 0, 0));
    }
    pl_write_result result;
    do {
        result = pl_outbox_write(&outbox, ends[0], &lock);
        assert_int_not_equal(PL_WRITE_BROKEN, result);
        ssize_t got;
        while ((got = read(ends[1], out + total, 1 << 20)) > 0)
            total += (size_t)got;
    } while (result != PL_WRITE_DRAINED);
    assert_true(pl_outbox_empty(&outbox));
    assert_int_equal(0, pl_outbox_close(&outbox));
    pl_mutex_close(&lock);
    close(ends[0]);
    close(ends[1]);
    return total;
}

static void check_message(pl_decoder_message *message, size_t number)
{
    pl_frame frame;
    assert_ok(pl_frame_read(&frame, message->head, message->head_bytes,
                            message->payload_bytes));
    assert_int_equal(number, frame.sequence);
    assert_int_equal(sizes[number], message->payload_bytes);
    assert_int_equal(0, (uintptr_t)message->payload % 8);
    for (size_t i = 0; i < message->payload_bytes; i++)
        assert_true(message->payload[i] == (uint8_t)(i * 7));
}

/* Decode `bytes` in reads of `step`; returns how many messages came. */
static size_t decode(const uint8_t *data, size_t bytes, size_t step,
                     bool sealed)
{
    pl_spares spares = { .bodies = { { NULL, 0 } } };
    pl_decoder decoder;
    pl_cipher *cipher = NULL;
    size_t count = 0;
    if (sealed)
        assert_ok(pl_cipher_new(&cipher, key, false));
    pl_decoder_init(&decoder, &spares, cipher);
    for (size_t at = 0; at <= bytes;) {
        pl_decoder_message message;
        pl_status status;
        while ((status = pl_decoder_next(&decoder, &message)) == PL_OK) {
            check_message(&message, count++);
            pl_spares_give(&spares, &message.body);
        }
        assert_int_equal(PL_AGAIN, status);
        assert_false(pl_decoder_holds(&decoder));
        if (at == bytes)
            break;
        struct iovec room[2];
        int places;
        assert_ok(pl_decoder_room(&decoder, room, &places));
        size_t part = room[0].iov_len < step ? room[0].iov_len : step;
        part = part < bytes - at ? part : bytes - at;
        assert_true(part > 0);
        memcpy(room[0].iov_base, data + at, part);
        pl_decoder_arrived(&decoder, part);
        at += part;
    }
    pl_decoder_close(&decoder);
    pl_spares_close(&spares);
    return count;
}

static void decoder_takes_reads_of_any_size(void **state)
{
    (void)state;
    uint8_t *data = malloc((size_t)2 << 20);
    long live = pl_mem_live();
    for (int sealed = 0; sealed < 2; sealed++) {
        size_t bytes = encode(data, sealed);
        static const size_t steps[] = { 7, 8, 4096, 100000, 1 << 20 };
        for (size_t i = 0; i < sizeof steps / sizeof *steps; i++)
            assert_int_equal(SIZES, decode(data, bytes, steps[i], sealed));
    }
    assert_int_equal(live, pl_mem_live());
    free(data);
}

/* The largest message is announced and a few bytes of it come. */
static void decoder_grows_with_what_arrives(void **state)
{
    (void)state;
    pl_spares spares = { .bodies = { { NULL, 0 } } };
    pl_decoder decoder;
    pl_decoder_message none;
    uint8_t head[PL_HEAD_BYTES] = { 0 };
    int64_t before = pl_mem_live_bytes();
    pl_decoder_init(&decoder, &spares, NULL);
    pl_decoder_message_prefix(head,
                              PL_FRAME_BYTES + (size_t)PL_FRAME_PAYLOAD_MAX);
    struct iovec room[2];
    int places;
    assert_ok(pl_decoder_room(&decoder, room, &places));
    memcpy(room[0].iov_base, head, sizeof head);
    pl_decoder_arrived(&decoder, sizeof head);
    for (size_t arrived = 0; arrived < 1000000;) {
        assert_int_equal(PL_AGAIN, pl_decoder_next(&decoder, &none));
        assert_ok(pl_decoder_room(&decoder, room, &places));
        assert_in_range(pl_mem_live_bytes() - before, 0,
                        2 * arrived + (128 << 10));
        size_t part = room[0].iov_len < 10000 ? room[0].iov_len : 10000;
        memset(room[0].iov_base, 1, part);
        pl_decoder_arrived(&decoder, part);
        arrived += part;
    }
    pl_decoder_close(&decoder);
    pl_spares_close(&spares);
    assert_int_equal(before, pl_mem_live_bytes());
}

UNIT_TESTS(cmocka_unit_test(decoder_takes_reads_of_any_size),
           cmocka_unit_test(decoder_grows_with_what_arrives))
