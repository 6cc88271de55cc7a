/* fuzz_share.c - a peer of this host that shares memory and cannot be
 * trusted: the text it offers, and what it writes into the channel.
 *
 * The first byte is the setting, and chooses which end is attacked.  With
 * SET_TEXT the rest is the text of an offer.  Else the next byte chooses what
 * the offer lies about, and records follow: a byte with the operation and
 * ARGS bytes.  The peer writes slots, counts and bytes; the attacked end
 * takes what it finds, and sends. */
#include "base/assert.h"
#include "fuzz/fuzz.h"
#include "net/shm/channel.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define AREA_BYTES 8192
#define ARGS       7

/* The setting. */
#define SET_TEXT   0x01
#define SET_CLIENT 0x02 /* the client is attacked, else the server */

/* What both ends have, and what a lying offer names instead. */
typedef struct host {
    pl_area *area;
    int bell[2];
    int unsealed; /* memory that could shrink */
    int null;     /* a device */
} host;

static const host *open_host(void)
{
    static host h;
    if (h.area != NULL)
        return &h;
    h.unsealed = memfd_create("unsealed", MFD_CLOEXEC);
    h.null = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (pl_area_new(&h.area, AREA_BYTES) != PL_OK ||
        pipe2(h.bell, O_CLOEXEC | O_NONBLOCK) != 0 || h.unsealed < 0 ||
        ftruncate(h.unsealed, AREA_BYTES) != 0 || h.null < 0)
        abort();
    return &h;
}

/* --- texts ------------------------------------------------------------ */

static void read_text(const uint8_t *data, size_t bytes)
{
    pl_share_offer share, again;
    char *text = malloc(bytes + 1), out[PL_SHARE_BYTES];
    if (text == NULL)
        abort();
    memcpy(text, data, bytes);
    text[bytes] = '\0';
    if (pl_share_read(&share, text) == PL_OK) {
        pl_share_write(&share, out);
        PL_ASSERT(pl_share_read(&again, out) == PL_OK);
        PL_ASSERT(strcmp(share.host, again.host) == 0 &&
                  share.pid == again.pid && share.pid > 0 &&
                  share.area.fd == again.area.fd &&
                  share.area.bytes == again.area.bytes &&
                  share.bell.inode == again.bell.inode);
    }
    free(text);
}

/* --- offers that lie -------------------------------------------------- */

/* Returns whether the offer can still be used. */
static bool lie(const host *h, pl_share_offer *share, uint8_t how)
{
    pl_share_file *files[] = { &share->channel, &share->area, &share->bell };
    pl_share_file *file = files[how % 3];
    const int others[] = { h->unsealed, h->null, h->bell[0] };
    switch (how / 3) {
    case 0:
        return true;
    case 1:
    case 2:
    case 3:
        if (file == &share->bell && how / 3 == 3)
            return true; /* it is the bell */
        if (pl_share_file_of(file, others[how / 3 - 1]) != PL_OK)
            abort();
        return false;
    case 4:
        file->bytes ^= 1;
        return false;
    case 5:
        file->inode ^= 1;
        return false;
    case 6:
        file->bytes = 0;
        return file == &share->bell;
    case 7:
        file->fd = -1; /* an area need not be there */
        return file == &share->area;
    case 8:
        file->fd = INT32_MAX;
        return false;
    default:
        share->nonce[how % PL_NONCE_BYTES] ^= how;
        return false;
    }
}

/* Both ends of a channel; false: the offer was not taken. */
static bool open_ends(const host *h, bool client, uint8_t how,
                      pl_channel **attacked, pl_channel **peer)
{
    pl_share_offer own, answer;
    pl_channel *made = NULL, *opened = NULL;
    if (pl_share_init(&own, h->area, h->bell[0]) != PL_OK ||
        pl_channel_new(&made, &own) != PL_OK)
        abort();
    bool good = client || lie(h, &own, how);
    bool taken = pl_channel_open(&opened, &own) == PL_OK;
    PL_ASSERT(good == taken);
    if (taken) {
        if (pl_share_init(&answer, h->area, h->bell[0]) != PL_OK)
            abort();
        memcpy(answer.nonce, own.nonce, sizeof answer.nonce);
        good = !client || lie(h, &answer, how);
        /* An answer has no channel to lie about. */
        taken = pl_channel_complete(made, &answer) == PL_OK;
        PL_ASSERT(good == taken || (client && how % 3 == 0));
    }
    *attacked = client ? made : opened;
    *peer = client ? opened : made;
    return taken;
}

/* --- a channel that is written to ------------------------------------- */

static uint32_t get(const uint8_t *at, int bytes)
{
    uint32_t value = 0;
    for (int i = 0; i < bytes; i++)
        value = value << 8 | at[i];
    return value;
}

/* A slot of the ring; most of them are sound but for one field. */
static void write_slot(pl_ring_memory *ring, uint32_t at, const uint8_t *args)
{
    pl_ring_slot slot = { .place = args[1] % 4 };
    uint32_t bytes = get(args + 2, 2), offset = get(args + 4, 2);
    slot.bytes = slot.place == PL_PAYLOAD_NONE ? 0 : bytes;
    slot.offset = (args[0] & 1) != 0 ? offset * 8 : UINT64_MAX - offset;
    pl_frame_write(&(pl_frame) { .kind = PL_FRAME_PUSH,
                                 .count = slot.bytes / 4,
                                 .payload_bytes = slot.bytes },
                   slot.frame);
    if ((args[0] & 2) != 0)
        slot.frame[args[6] % PL_FRAME_BYTES] ^= args[5] | 1;
    memcpy(&ring->slots[at % PL_RING_SLOTS], &slot, sizeof slot);
}

static bool lies_in(const void *at, size_t bytes, const void *memory,
                    size_t size)
{
    uintptr_t from = (uintptr_t)at, begin = (uintptr_t)memory;
    return from >= begin && from - begin <= size &&
           bytes <= size - (from - begin);
}

/* Whatever was written, a payload lies in memory that is shared. */
static void take(pl_channel *channel)
{
    pl_frame frame;
    const void *payload = NULL;
    pl_lease *lease = NULL;
    pl_status status = pl_channel_peek(channel, &frame, &payload, &lease);
    if (status == PL_OK && frame.payload_bytes > 0) {
        PL_ASSERT(lease != NULL
                      ? lease == channel->area &&
                            pl_lease_covers(lease, payload, frame.payload_bytes)
                      : lies_in(payload, frame.payload_bytes,
                                channel->in.memory->room, PL_RING_INLINE));
        PL_ASSERT((uintptr_t)payload % 8 == 0);
    }
    if (status == PL_OK || status == PL_FORMAT)
        pl_channel_advance(channel);
    else
        PL_ASSERT(status == PL_AGAIN || status == PL_PEER);
}

static void send(const host *h, pl_channel *channel, const uint8_t *args)
{
    static uint8_t bytes[PL_RING_INLINE + 8];
    bool lasting = (args[0] & 1) != 0;
    uint32_t count = get(args + 1, 2) + (args[0] & 2);
    if (lasting)
        count %= AREA_BYTES;
    pl_frame frame = { .kind = PL_FRAME_PARAMS, .payload_bytes = count };
    pl_status status = PL_AGAIN;
    if (pl_channel_live(channel))
        status = pl_channel_send(channel, &frame,
                                 lasting ? pl_area_data(h->area) : bytes,
                                 lasting, h->area);
    PL_ASSERT(status == PL_OK || status == PL_AGAIN || status == PL_PEER);
}

static void operate(const host *h, pl_channel *attacked, pl_channel *peer,
                    uint8_t what, const uint8_t *args)
{
    pl_ring_memory *in = attacked->in.memory, *out = attacked->out.memory;
    uint32_t count = get(args, 4);
    switch (what % 8) {
    case 0: /* one frame more */
        write_slot(peer->out.memory, atomic_load(&in->written), args);
        atomic_fetch_add(&in->written, 1);
        break;
    case 1:
        atomic_store(&in->written, count);
        break;
    case 2: /* without a frame */
        atomic_fetch_add(&in->written, args[0]);
        break;
    case 3:
        atomic_store(&out->read, (args[6] & 1) != 0
                                     ? count
                                     : atomic_load(&out->written) - args[0]);
        break;
    case 4: /* flags, magic, and whatever lies there */
        ((volatile uint8_t *)attacked->memory)[get(args, 3) % 65536] = args[3];
        break;
    case 5:
        atomic_store(&out->sleeping, args[0]);
        break;
    case 6:
        send(h, attacked, args);
        break;
    default:
        for (int i = 0; i <= args[0] % 32; i++)
            take(attacked);
        break;
    }
}

static void drain(const host *h)
{
    char bytes[256];
    while (read(h->bell[0], bytes, sizeof bytes) > 0)
        continue;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    if (bytes < 2)
        return 0;
    if ((data[0] & SET_TEXT) != 0) {
        read_text(data + 1, bytes - 1);
        return 0;
    }
    const host *h = open_host();
    pl_channel *attacked, *peer;
    if (open_ends(h, (data[0] & SET_CLIENT) != 0, data[1], &attacked, &peer))
        for (const uint8_t *at = data + 2; data + bytes - at > ARGS;
             at += 1 + ARGS)
            operate(h, attacked, peer, at[0], at + 1);
    pl_channel_free(attacked);
    pl_channel_free(peer);
    drain(h);
    return 0;
}
