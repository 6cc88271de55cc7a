#include "net/endpoint.h"

#include "base/assert.h"
#include "base/mem.h"
#include "net/endpoint_priv.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#define PEERS_DEFAULT 1024

static pl_status fill_random(void *out, size_t bytes)
{
    if (getrandom(out, bytes, 0) == (ssize_t)bytes)
        return PL_OK;
    return PL_FAIL(PL_IO, "getrandom: %s", strerror(errno));
}

/* What servers and clients have in common. */
static pl_status endpoint_new(pl_endpoint **out, const pl_endpoint_opts *opts,
                              int32_t peers_max)
{
    PL_ASSERT(opts->address != NULL && opts->name != NULL && peers_max >= 1);
    pl_endpoint *e;
    uint64_t seed;
    pl_status status;
    PL_TRY(PL_NEW(e, 1));
    e->area = opts->area;
    e->no_shm = opts->no_shm;
    PL_TRY_OUT(status, fill_random(&seed, sizeof seed));
    PL_TRY_OUT(status, pl_mem_copy_text(&e->name, opts->name));
    PL_TRY_OUT(status, pl_peers_init(&e->peers, peers_max, seed));
    *out = e;
    return PL_OK;
out:
    pl_endpoint_free(e, 0);
    return status;
}

pl_status pl_endpoint_listen(pl_endpoint **out, const pl_endpoint_opts *opts)
{
    pl_endpoint *e;
    int32_t most = opts->peers_max == 0 ? PEERS_DEFAULT : opts->peers_max;
    PL_TRY(endpoint_new(&e, opts, most));
    e->server = true;
    pl_status status = pl_socket_listen(&e->socket, opts->address);
    if (status != PL_OK) {
        pl_endpoint_free(e, 0);
        return pl_context(status, "%s", opts->name);
    }
    *out = e;
    return PL_OK;
}

pl_status pl_endpoint_connect(pl_endpoint **out, const pl_endpoint_opts *opts)
{
    pl_endpoint *e;
    uint8_t identity[PL_IDENTITY_BYTES];
    pl_status status;
    PL_TRY(endpoint_new(&e, opts, 1));
    PL_TRY_OUT(status, fill_random(identity, sizeof identity));
    /* A first byte of 0 marks identities that ZeroMQ makes up. */
    identity[0] |= 1;
    PL_TRY_OUT(status, pl_socket_connect(&e->socket, opts->address, identity));
    PL_ASSERT(pl_peers_add(&e->peers, identity) == 0);
    *out = e;
    return PL_OK;
out:
    pl_endpoint_free(e, 0);
    return pl_context(status, "%s", opts->name);
}

void pl_endpoint_free(pl_endpoint *e, int linger_ms)
{
    if (e == NULL)
        return;
    pl_tcp_release(e);
    pl_socket_close(&e->socket, linger_ms);
    pl_peers_close(&e->peers);
    pl_mem_free(e->aligned);
    pl_mem_free(e->name);
    pl_mem_free(e);
}

const char *pl_endpoint_address(const pl_endpoint *e)
{
    return e->socket.address;
}

pl_endpoint_counts pl_endpoint_count(const pl_endpoint *e)
{
    return e->counts;
}

pl_status pl_endpoint_send(pl_endpoint *e, pl_peer to, const pl_frame *frame,
                           const void *payload, bool lasting)
{
    PL_ASSERT(to >= 0 && to < e->peers.count);
    PL_ASSERT(frame->payload_bytes <= PL_FRAME_PAYLOAD_MAX);
    PL_ASSERT(frame->payload_bytes == 0 || payload != NULL);
    return pl_tcp_send(e, to, frame, payload, lasting);
}

/* Sleep until something may have come, or the deadline. */
static void wait(pl_endpoint *e, pl_deadline deadline)
{
    struct pollfd fds[] = {
        { .fd = e->socket.fd, .events = POLLIN },
        { .fd = e->socket.monitor_fd, .events = POLLIN },
    };
    int64_t left_ns = pl_deadline_left_ns(deadline);
    /* A fake clock cannot wake anyone, so look at it every millisecond. */
    if (deadline.clock->fake && left_ns > 1000000)
        left_ns = 1000000;
    struct timespec left = { left_ns / 1000000000, left_ns % 1000000000 };
    ppoll(fds, e->server ? 2 : 1, &left, NULL);
}

pl_status pl_endpoint_receive(pl_endpoint *e, pl_message *out,
                              pl_deadline deadline)
{
    pl_tcp_release(e);
    for (;;) {
        pl_status status = pl_tcp_take(e, out);
        if (status != PL_AGAIN)
            return status;
        if (e->server)
            pl_tcp_watch(e);
        if (pl_deadline_passed(deadline))
            return PL_FAIL(PL_TIMEOUT, "no message at %s in time",
                           e->socket.address);
        wait(e, deadline);
    }
}

void pl_endpoint_drop(pl_endpoint *e, pl_peer peer)
{
    pl_peers_drop(&e->peers, peer);
}

const char *pl_endpoint_peer_text(pl_endpoint *e, pl_peer peer)
{
    PL_ASSERT(peer >= 0 && peer < e->peers.count);
    return e->server ? e->peers.entries[peer].address : e->socket.address;
}
