/* The calls of an endpoint over its two routes, TCP and shared memory: which
 * one a message takes, how both are waited for at once, what is counted. */
#include "net/endpoint.h"

#include "base/assert.h"
#include "base/log.h"
#include "base/mem.h"
#include "net/endpoint_priv.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#define PEERS_DEFAULT 1024
#define TCP_FIRST     16 /* of so many messages one is looked for there */
#define POLLS_FEW     64 /* that need no memory */

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
    e->bell[0] = e->bell[1] = -1;
    PL_TRY_OUT(status, PL_NEW(e->polls, POLL_PEERS));
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
    pl_status status = pl_tcp_listen(e, opts);
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
    PL_TRY_OUT(status, pl_tcp_connect(e, opts, identity));
    PL_ASSERT(pl_peers_add(&e->peers, identity) == 0);
    if (opts->keys != NULL)
        e->peers.entries[0].who = pl_tcp_server(opts);
    *out = e;
    return PL_OK;
out:
    pl_endpoint_free(e, 0);
    return pl_context(status, "%s", opts->name);
}

/* A flood of refusals does not fill the log. */
static void tell_refusals(pl_endpoint *e, bool last)
{
    if (e->refusals.held == 0 || e->tcp == NULL)
        return;
    int64_t more =
        pl_burst_rest(&e->refusals, pl_clock_now_ns(pl_clock_real()), last);
    if (more > 0)
        pl_log(PL_LOG_WARN,
               "%s (%s): ... and %lld more whose messages were dropped",
               e->name, e->tcp->address, (long long)more);
}

void pl_endpoint_free(pl_endpoint *e, int linger_ms)
{
    if (e == NULL)
        return;
    tell_refusals(e, true);
    pl_tcp_release(e);
    pl_shared_close(e);
    pl_tcp_close(e, linger_ms);
    pl_peers_close(&e->peers);
    pl_mem_free(e->name);
    pl_mem_free(e);
}

const char *pl_endpoint_address(const pl_endpoint *e)
{
    return e->tcp->address;
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
    pl_status status = pl_shared_send(e, to, frame, payload, lasting);
    if (status == PL_AGAIN)
        status = pl_tcp_send(e, to, frame, payload, lasting);
    if (status == PL_AGAIN) {
        e->counts.dropped_messages++;
        return PL_OK;
    }
    if (status != PL_OK)
        return status;
    e->counts.sent_messages++;
    e->counts.sent_bytes += PL_FRAME_BYTES + (int64_t)frame->payload_bytes;
    return PL_OK;
}

void pl_endpoint_received(pl_endpoint *e, const pl_frame *frame)
{
    e->counts.received_messages++;
    e->counts.received_bytes += PL_FRAME_BYTES + (int64_t)frame->payload_bytes;
}

void pl_endpoint_refuse(pl_endpoint *e, const char *who, const char *why)
{
    pl_offenders *known = &e->offenders;
    e->counts.refused_messages++;
    for (size_t i = 0; i < PL_OFFENDERS; i++)
        if (strcmp(known->who[i], who) == 0)
            return;
    snprintf(known->who[known->next++ % PL_OFFENDERS], PL_PEER_TEXT, "%s", who);
    if (!pl_burst_shows(&e->refusals, pl_clock_now_ns(pl_clock_real())))
        return;
    pl_log(PL_LOG_WARN,
           "%s (%s): dropped what came from %s: %s; more from there is only "
           "counted",
           e->name, e->tcp->address, who, why);
}

/* Get ready to sleep, until *until_ns at most; false when something may be
 * there already. */
static bool arm(pl_endpoint *e, int64_t *until_ns)
{
    int64_t until;
    bool empty = pl_shared_sleep(e);
    empty = pl_tcp_sleep(e, &e->polls[POLL_TCP], &until) && empty;
    if (until < *until_ns)
        *until_ns = until;
    return empty;
}

static int poll_count(const pl_endpoint *e)
{
    return POLL_PEERS + e->sharing_count;
}

static struct timespec left_of(pl_deadline deadline, int64_t until_ns)
{
    int64_t left_ns = pl_deadline_left_ns(deadline);
    /* A fake clock cannot wake anyone, so look at it every millisecond. */
    if (deadline.clock->fake && left_ns > 1000000)
        left_ns = 1000000;
    if (until_ns != INT64_MAX) {
        int64_t until = until_ns - pl_clock_now_ns(pl_clock_real());
        until = until < 0 ? 0 : until;
        left_ns = until < left_ns ? until : left_ns;
    }
    return (struct timespec) { left_ns / 1000000000, left_ns % 1000000000 };
}

/* Sleep on the descriptors of several endpoints and, from 0 on, on `fd`. */
static void sleep_on(pl_endpoint *const *endpoints, int count, int total,
                     int fd, const struct timespec *left)
{
    struct pollfd few[POLLS_FEW], *all = few, *at;
    if (total > POLLS_FEW)
        all = pl_mem_alloc((size_t)total, sizeof *all);
    if (all == NULL)
        return; /* look at all of them instead */
    at = all;
    for (int i = 0; i < count; i++) {
        memcpy(at, endpoints[i]->polls,
               (size_t)poll_count(endpoints[i]) * sizeof *at);
        at += poll_count(endpoints[i]);
    }
    *at++ = (struct pollfd) { fd, POLLIN, 0 };
    ppoll(all, (nfds_t)total, left, NULL);
    at = all;
    for (int i = 0; i < count; i++) {
        memcpy(endpoints[i]->polls, at,
               (size_t)poll_count(endpoints[i]) * sizeof *at);
        at += poll_count(endpoints[i]);
    }
    if (all != few)
        pl_mem_free(all);
}

void pl_endpoint_wait_or(pl_endpoint *const *endpoints, int count, int fd,
                         pl_deadline deadline)
{
    PL_ASSERT(count >= 1);
    bool sleep = true;
    int total = 1; /* fd */
    int64_t until_ns = INT64_MAX;
    for (int i = 0; i < count; i++) {
        sleep = arm(endpoints[i], &until_ns) && sleep;
        total += poll_count(endpoints[i]);
    }
    struct timespec left = left_of(deadline, until_ns);
    if (sleep && count == 1 && fd < 0)
        ppoll(endpoints[0]->polls, (nfds_t)(total - 1), &left, NULL);
    else if (sleep)
        sleep_on(endpoints, count, total, fd, &left);
    for (int i = 0; i < count; i++) {
        pl_shared_wake(endpoints[i]);
        tell_refusals(endpoints[i], false);
    }
}

void pl_endpoint_wait(pl_endpoint *const *endpoints, int count,
                      pl_deadline deadline)
{
    pl_endpoint_wait_or(endpoints, count, -1, deadline);
}

void pl_endpoint_share(pl_endpoint *e, pl_area *area)
{
    e->area = area;
}

/* Whatever is there, without waiting.  Shared memory is the faster way and
 * goes first, but not always: neither way may starve the other. */
static pl_status take(pl_endpoint *e, pl_message *out)
{
    bool tcp_first = e->counts.received_messages % TCP_FIRST == 0;
    pl_status status = tcp_first ? PL_AGAIN : pl_shared_take(e, out);
    if (status == PL_AGAIN)
        status = pl_tcp_take(e, out);
    if (status == PL_AGAIN && tcp_first)
        status = pl_shared_take(e, out);
    return status;
}

pl_status pl_endpoint_poll(pl_endpoint *e, pl_message *out)
{
    pl_tcp_release(e);
    pl_shared_release(e);
    out->lease = NULL;
    pl_status status = take(e, out);
    if (status == PL_OK)
        out->who = e->peers.entries[out->from].who;
    else if (status == PL_AGAIN && pl_tcp_refused(e) != NULL)
        status = PL_FAIL(PL_CLOSED, "%s: the server at %s %s", e->name,
                         e->tcp->address, pl_tcp_refused(e));
    return status;
}

pl_status pl_endpoint_receive(pl_endpoint *e, pl_message *out,
                              pl_deadline deadline)
{
    for (;;) {
        pl_status status = pl_endpoint_poll(e, out);
        if (status != PL_AGAIN)
            return status;
        if (pl_deadline_passed(deadline))
            return PL_FAIL(PL_TIMEOUT, "no message at %s in time",
                           e->tcp->address);
        pl_endpoint_wait(&e, 1, deadline);
    }
}

void pl_endpoint_drop(pl_endpoint *e, pl_peer peer)
{
    pl_shared_drop(e, peer);
    pl_peers_drop(&e->peers, peer);
}

void pl_endpoint_keep(pl_endpoint *e, pl_peer peer)
{
    e->peers.entries[peer].kept = true;
}

const char *pl_endpoint_peer_text(pl_endpoint *e, pl_peer peer)
{
    PL_ASSERT(peer >= 0 && peer < e->peers.count);
    return e->server ? e->peers.entries[peer].address : e->tcp->address;
}
