/* fuzz_decoder.c - the bytes of a connection after its handshake, plain or
 * encrypted, in reads of any size. */
#include "base/assert.h"
#include "base/mem.h"
#include "fuzz/fuzz.h"
#include "net/tcp/decoder.h"

#include <string.h>

#define MOST_MEMORY ((int64_t)64 << 20)

/* Read every byte of a message, as its receiver would. */
static void use(pl_spares *spares, pl_decoder_message *message)
{
    uint8_t sum = 0;
    for (size_t i = 0; i < message->head_bytes; i++)
        sum = (uint8_t)(sum + message->head[i]);
    for (size_t i = 0; i < message->payload_bytes; i++)
        sum = (uint8_t)(sum + message->payload[i]);
    PL_ASSERT((uintptr_t)message->payload % 8 == 0 ||
              message->head_bytes < PL_FRAME_BYTES);
    PL_ASSERT(message->payload_bytes <= PL_FRAME_PAYLOAD_MAX);
    if (message->body.memory != NULL) {
        message->body.memory[0] = sum;
        pl_spares_give(spares, &message->body);
    }
}

/* The first byte: encrypted or not, and how much is read at once. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static const uint8_t key[PL_SESSION_KEY_BYTES];
    pl_spares spares = { .bodies = { { NULL, 0 } } };
    pl_decoder decoder;
    pl_cipher *cipher = NULL;
    if (bytes < 1 ||
        ((data[0] & 1) != 0 && pl_cipher_new(&cipher, key, false) != PL_OK))
        return 0;
    size_t step = (size_t)1 << (data[0] / 2 % 16);
    int64_t before = pl_mem_live_bytes();
    pl_decoder_init(&decoder, &spares, cipher);
    pl_status status = PL_AGAIN;
    for (data++, bytes--; bytes > 0;) {
        pl_decoder_message message;
        while ((status = pl_decoder_next(&decoder, &message)) == PL_OK)
            use(&spares, &message);
        struct iovec room[2];
        int count;
        if (status != PL_AGAIN ||
            pl_decoder_room(&decoder, room, &count) != PL_OK)
            break;
        size_t read = 0, most = bytes < step ? bytes : step;
        for (int i = 0; i < count && read < most; i++) {
            size_t part =
                room[i].iov_len < most - read ? room[i].iov_len : most - read;
            memcpy(room[i].iov_base, data + read, part);
            read += part;
        }
        PL_ASSERT(read > 0);
        pl_decoder_arrived(&decoder, read);
        data += read;
        bytes -= read;
        PL_ASSERT(pl_mem_live_bytes() - before < MOST_MEMORY);
    }
    pl_decoder_close(&decoder);
    pl_spares_close(&spares);
    return 0;
}
