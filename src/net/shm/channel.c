/* Memory through which two processes of a host communicate: which one makes it,
 * which one maps it, when it may be written to and when nothing more will
 * arrive.  Everything that the peer writes there is checked. */
#include "net/shm/channel.h"

#include "base/mem.h"
#include "net/shm/area_priv.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

static const char magic[8] = "PLSHM1\n";

enum {
    TO_SERVER,
    TO_CLIENT
};

struct pl_channel_memory {
    char magic[8];
    uint8_t nonce[PL_NONCE_BYTES];
    _Atomic uint32_t complete;  /* the client has mapped the server's part */
    _Atomic uint32_t closed[2]; /* by the client, by the server */
    pl_ring_memory rings[2];
};

static pl_status channel_alloc(pl_channel **out, bool client)
{
    pl_channel *channel;
    PL_TRY(PL_NEW(channel, 1));
    channel->fd = channel->bell = channel->watch = -1;
    channel->client = client;
    *out = channel;
    return PL_OK;
}

static void use_memory(pl_channel *channel, void *memory)
{
    channel->memory = memory;
    pl_ring_memory *rings = channel->memory->rings;
    channel->out.memory = &rings[channel->client ? TO_SERVER : TO_CLIENT];
    channel->in.memory = &rings[channel->client ? TO_CLIENT : TO_SERVER];
}

pl_status pl_channel_new(pl_channel **out, pl_share_offer *own)
{
    pl_channel *channel;
    pl_status status;
    PL_TRY(channel_alloc(&channel, true));
    PL_TRY_OUT(status,
               pl_area_make_file(&channel->fd, sizeof(pl_channel_memory)));
    PL_TRY_OUT(status, pl_share_file_of(&own->channel, channel->fd));
    void *memory = mmap(NULL, sizeof(pl_channel_memory), PROT_READ | PROT_WRITE,
                        MAP_SHARED, channel->fd, 0);
    if (memory == MAP_FAILED ||
        getrandom(own->nonce, PL_NONCE_BYTES, 0) != PL_NONCE_BYTES) {
        status = PL_FAIL(PL_NOMEM, "shared memory: %s", strerror(errno));
        goto out;
    }
    use_memory(channel, memory);
    memcpy(channel->memory->nonce, own->nonce, PL_NONCE_BYTES);
    memcpy(channel->memory->magic, magic, sizeof magic);
    *out = channel;
    return PL_OK;
out:
    pl_channel_free(channel);
    return status;
}

/* Map the peer's area, open its bell, watch its process. */
static pl_status attach(pl_channel *channel, const pl_share_offer *peer)
{
    PL_TRY(pl_share_watch(&channel->watch, peer));
    PL_TRY(pl_share_open_bell(&channel->bell, peer));
    if (peer->area.fd < 0)
        return PL_OK;
    void *area = NULL;
    PL_TRY(pl_share_map(&area, peer, &peer->area, false));
    return pl_lease_new_take(&channel->area, area, peer->area.bytes);
}

static pl_status open_memory(pl_channel *channel, const pl_share_offer *client)
{
    if (client->channel.bytes != sizeof(pl_channel_memory))
        return PL_FAIL(PL_PEER, "channel of %llu bytes, expected %zu",
                       (unsigned long long)client->channel.bytes,
                       sizeof(pl_channel_memory));
    void *memory = NULL;
    PL_TRY(pl_share_map(&memory, client, &client->channel, true));
    use_memory(channel, memory);
    if (memcmp(channel->memory->magic, magic, sizeof magic) != 0 ||
        memcmp(channel->memory->nonce, client->nonce, PL_NONCE_BYTES) != 0)
        return PL_FAIL(PL_PEER, "memory of process %d is no channel",
                       (int)client->pid);
    return PL_OK;
}

pl_status pl_channel_open(pl_channel **out, const pl_share_offer *client)
{
    pl_channel *channel;
    pl_status status;
    PL_TRY(channel_alloc(&channel, false));
    PL_TRY_OUT(status, open_memory(channel, client));
    PL_TRY_OUT(status, attach(channel, client));
    *out = channel;
    return PL_OK;
out:
    /* Close only what was open: the same offer may arrive again. */
    if (channel->memory != NULL)
        munmap(channel->memory, sizeof(pl_channel_memory));
    channel->memory = NULL;
    pl_channel_free(channel);
    return status;
}

bool pl_channel_is(const pl_channel *channel, const pl_share_offer *client)
{
    return !channel->dead &&
           memcmp(channel->memory->nonce, client->nonce, PL_NONCE_BYTES) == 0;
}

pl_status pl_channel_complete(pl_channel *channel, const pl_share_offer *server)
{
    if (memcmp(channel->memory->nonce, server->nonce, PL_NONCE_BYTES) != 0)
        return PL_FAIL(PL_PEER, "the answer is to another offer");
    PL_TRY(attach(channel, server));
    close(channel->fd);
    channel->fd = -1;
    atomic_store(&channel->memory->complete, 1);
    return PL_OK;
}

static void ring_bell(const pl_channel *channel)
{
    /* A full pipe wakes as well. */
    ssize_t ignored = write(channel->bell, "!", 1);
    (void)ignored;
}

void pl_channel_free(pl_channel *channel)
{
    if (channel == NULL)
        return;
    if (channel->memory != NULL) {
        atomic_store(&channel->memory->closed[channel->client ? 0 : 1], 1);
        if (channel->bell >= 0)
            ring_bell(channel);
        munmap(channel->memory, sizeof(pl_channel_memory));
    }
    pl_lease_release(channel->area);
    int fds[] = { channel->fd, channel->bell, channel->watch };
    for (size_t i = 0; i < sizeof fds / sizeof *fds; i++)
        if (fds[i] >= 0)
            close(fds[i]);
    pl_mem_free(channel);
}

bool pl_channel_live(const pl_channel *channel)
{
    return !channel->dead && channel->bell >= 0 &&
           atomic_load(&channel->memory->complete) != 0 &&
           atomic_load(&channel->memory->closed[channel->client ? 1 : 0]) == 0;
}

bool pl_channel_over(const pl_channel *channel)
{
    if (channel->watch < 0)
        return false; /* not complete yet */
    bool ended =
        channel->dead ||
        atomic_load(&channel->memory->closed[channel->client ? 1 : 0]) != 0;
    return ended && (channel->broken || pl_ring_empty(&channel->in));
}

pl_status pl_channel_send(pl_channel *channel, const pl_frame *frame,
                          const void *payload, bool lasting, const pl_area *own)
{
    size_t offset = 0;
    int place = frame->payload_bytes == 0 ? PL_PAYLOAD_NONE : PL_PAYLOAD_INLINE;
    if (place == PL_PAYLOAD_INLINE && lasting && own != NULL &&
        pl_area_holds(own, payload, frame->payload_bytes, &offset) &&
        offset % 8 == 0)
        place = PL_PAYLOAD_AREA;
    bool asleep = false;
    pl_status status =
        pl_ring_put(&channel->out, frame, place, payload, offset, &asleep);
    if (status == PL_PEER)
        channel->dead = true;
    if (asleep)
        ring_bell(channel);
    return status;
}

/* Whether the payload of the slot fits into `size` bytes. */
static bool inside(uint64_t size, const pl_ring_slot *slot)
{
    return slot->offset % 8 == 0 && slot->offset <= size &&
           slot->bytes <= size - slot->offset;
}

static pl_status locate(const pl_channel *channel, const pl_ring_slot *slot,
                        const void **payload)
{
    size_t area_bytes =
        channel->area != NULL ? pl_lease_bytes(channel->area) : 0;
    *payload = NULL;
    if (slot->place == PL_PAYLOAD_NONE && slot->bytes == 0)
        return PL_OK;
    if (slot->place == PL_PAYLOAD_INLINE && inside(PL_RING_INLINE, slot))
        *payload = channel->in.memory->room + slot->offset;
    else if (slot->place == PL_PAYLOAD_AREA && channel->area != NULL &&
             inside(area_bytes, slot))
        *payload = (const uint8_t *)pl_lease_data(channel->area) + slot->offset;
    else
        return PL_FAIL(PL_FORMAT,
                       "%u bytes at %llu of place %u are not in the %zu bytes "
                       "shared",
                       (unsigned)slot->bytes, (unsigned long long)slot->offset,
                       (unsigned)slot->place, area_bytes);
    return PL_OK;
}

pl_status pl_channel_peek(pl_channel *channel, pl_frame *frame,
                          const void **payload, pl_lease **lease)
{
    pl_ring_slot slot;
    if (channel->broken)
        return PL_AGAIN;
    pl_status status = pl_ring_peek(&channel->in, &slot);
    if (status == PL_PEER)
        channel->dead = channel->broken = true;
    if (status != PL_OK)
        return status;
    *lease = slot.place == PL_PAYLOAD_AREA ? channel->area : NULL;
    PL_TRY(locate(channel, &slot, payload));
    status = pl_frame_read(frame, slot.frame, sizeof slot.frame, slot.bytes);
    return status == PL_OK ? PL_OK : PL_FORMAT;
}

void pl_channel_advance(pl_channel *channel)
{
    pl_ring_advance(&channel->in);
}
