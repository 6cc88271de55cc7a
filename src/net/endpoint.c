/* The calls of an endpoint over its routes: which route a message takes, how to
 * wait for all of them at once, what is counted. */
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
#define TURN_AFTER    16 /* messages; then another route is polled first... */
#define TURNS         64 /* ... for at most so many messages */
#define POLLS_FEW     64 /* that need no memory */

static pl_status fill_random(void *out, size_t bytes)
{
    if (getrandom(out, bytes, 0) == (ssize_t)bytes)
        return PL_OK;
    return PL_FAIL(PL_IO, "getrandom: %s", strerror(errno));
}

/* The transports that the options allow; the connection is first. */
static void choose_rows(pl_endpoint *e, const pl_transport *wanted)
{
    e->wanted = wanted;
    if (wanted != NULL && wanted->upgrade == NULL) {
        e->rows[e->row_count++] = wanted;
        return;
    }
    for (const pl_transport *const *row = pl_transports(); *row != NULL; row++)
        if (wanted == NULL || (*row)->upgrade == NULL)
            e->rows[e->row_count++] = *row;
    if (wanted != NULL)
        e->rows[e->row_count++] = wanted;
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
    choose_rows(e, opts->transport);
    snprintf(e->address, sizeof e->address, "%s", opts->address);
    PL_TRY_OUT(status, fill_random(&seed, sizeof seed));
    PL_TRY_OUT(status, pl_mem_copy_text(&e->name, opts->name));
    PL_TRY_OUT(status, pl_peers_init(&e->peers, peers_max, seed));
    *out = e;
    return PL_OK;
out:
    pl_endpoint_free(e, 0);
    return status;
}

static pl_status open_connection(pl_endpoint *e, const pl_endpoint_opts *opts)
{
    PL_TRY(e->rows[0]->open(&e->routes[0], e, opts));
    return pl_endpoint_need_polls(e, 0);
}

pl_status pl_endpoint_listen(pl_endpoint **out, const pl_endpoint_opts *opts)
{
    pl_endpoint *e;
    int32_t most = opts->peers_max == 0 ? PEERS_DEFAULT : opts->peers_max;
    PL_TRY(endpoint_new(&e, opts, most));
    e->server = true;
    pl_status status = open_connection(e, opts);
    if (status != PL_OK) {
        pl_endpoint_free(e, 0);
        return pl_context(status, "%s", opts->name);
    }
    *out = e;
    return PL_OK;
}

pl_principal pl_endpoint_server(const pl_endpoint_opts *opts)
{
    return (pl_principal) { opts->to_worker ? PL_PRINCIPAL_WORKER
                                            : PL_PRINCIPAL_PS,
                            opts->server };
}

pl_status pl_endpoint_connect(pl_endpoint **out, const pl_endpoint_opts *opts)
{
    pl_endpoint *e;
    uint8_t identity[PL_IDENTITY_BYTES];
    pl_status status;
    PL_TRY(endpoint_new(&e, opts, 1));
    PL_TRY_OUT(status, fill_random(identity, sizeof identity));
    PL_ASSERT(pl_peers_add(&e->peers, identity) == 0);
    if (opts->keys != NULL)
        e->peers.entries[0].who = pl_endpoint_server(opts);
    PL_TRY_OUT(status, open_connection(e, opts));
    *out = e;
    return PL_OK;
out:
    pl_endpoint_free(e, 0);
    return pl_context(status, "%s", opts->name);
}

/* A flood of refusals does not fill the log. */
static void tell_refusals(pl_endpoint *e, bool last)
{
    if (e->refusals.held == 0)
        return;
    int64_t more =
        pl_burst_rest(&e->refusals, pl_clock_now_ns(pl_clock_real()), last);
    if (more > 0)
        pl_log(PL_LOG_WARN,
               "%s (%s): ... and %lld more whose messages were dropped",
               e->name, e->address, (long long)more);
}

void pl_endpoint_free(pl_endpoint *e, int linger_ms)
{
    if (e == NULL)
        return;
    tell_refusals(e, true);
    for (int i = e->row_count - 1; i >= 0; i--)
        if (e->routes[i] != NULL)
            e->rows[i]->close(e->routes[i], linger_ms);
    pl_peers_close(&e->peers);
    pl_mem_free(e->polls);
    pl_mem_free(e->name);
    pl_mem_free(e);
}

const char *pl_endpoint_address(const pl_endpoint *e)
{
    return e->address;
}

pl_endpoint_counts pl_endpoint_count(const pl_endpoint *e)
{
    return e->counts;
}

int64_t pl_endpoint_busy_ns(const pl_endpoint *e)
{
    const pl_route *route = e->routes[0];
    bool here = !e->server && route->transport->busy_ns != NULL;
    return here && !pl_endpoint_shared(e, 0) ? route->transport->busy_ns(route)
                                             : -1;
}

pl_status pl_endpoint_send(pl_endpoint *e, pl_peer to, const pl_frame *frame,
                           const void *payload, bool lasting)
{
    PL_ASSERT(to >= 0 && to < e->peers.count);
    PL_ASSERT(frame->payload_bytes <= PL_FRAME_PAYLOAD_MAX);
    PL_ASSERT(frame->payload_bytes == 0 || payload != NULL);
    pl_route *route = e->peers.entries[to].upgrade;
    pl_status status = PL_AGAIN;
    if (route != NULL)
        status = route->transport->send(route, to, frame, payload, lasting);
    if (status == PL_AGAIN)
        status = e->rows[0]->send(e->routes[0], to, frame, payload, lasting);
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
           "%s (%s): dropped what was received from %s: %s; more from there is "
           "only "
           "counted",
           e->name, e->address, who, why);
}

static int poll_count(const pl_endpoint *e)
{
    int count = 0;
    for (int i = 0; i < e->row_count; i++)
        count += e->routes[i] != NULL ? e->routes[i]->polls : 0;
    return count;
}

pl_status pl_endpoint_need_polls(pl_endpoint *e, int more)
{
    size_t count = (size_t)poll_count(e) + (size_t)more;
    PL_TRY(PL_RESIZE(e->polls, count));
    return PL_OK;
}

/* Get ready to sleep, until *until_ns at most; false when a message may be
 * waiting already. */
static bool arm(pl_endpoint *e, int64_t *until_ns)
{
    bool empty = true;
    struct pollfd *polls = e->polls;
    for (int i = 0; i < e->row_count; i++) {
        pl_route *route = e->routes[i];
        if (route == NULL)
            continue;
        empty = e->rows[i]->sleep(route, polls, until_ns) && empty;
        polls += route->polls;
    }
    return empty;
}

static void disarm(pl_endpoint *e)
{
    const struct pollfd *polls = e->polls;
    for (int i = 0; i < e->row_count; i++) {
        pl_route *route = e->routes[i];
        int count = route != NULL ? route->polls : 0; /* before it changes */
        if (route != NULL && e->rows[i]->wake != NULL)
            e->rows[i]->wake(route, polls);
        polls += count;
    }
}

static struct timespec left_of(pl_deadline deadline, int64_t until_ns)
{
    int64_t left_ns = pl_deadline_left_ns(deadline);
    /* A fake clock cannot wake anyone, so poll it every millisecond. */
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
        return; /* poll all of them instead */
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
        disarm(endpoints[i]);
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

static pl_status take_from(pl_endpoint *e, int row, pl_message *out)
{
    pl_route *route = e->routes[row];
    return route != NULL ? e->rows[row]->take(route, out) : PL_AGAIN;
}

/* The next message of any route, without waiting.  An upgrade is faster and
 * goes first, but not always: no route may starve another.  Polling a
 * connection costs a system call, so it is rare; once it has a message, those
 * that follow are taken, too.  Heartbeats take the connection: they do not
 * queue behind the gradients of many workers. */
static pl_status take(pl_endpoint *e, pl_message *out)
{
    int last = e->row_count - 1, first = last;
    if (last > 0 && e->turns == 0 &&
        e->counts.received_messages % TURN_AFTER == 0) {
        e->turns = TURNS;
        e->turn = (e->turn + 1) % last;
    }
    if (e->turns > 0)
        first = e->turn;
    pl_status status = take_from(e, first, out);
    if (e->turns > 0)
        e->turns = status == PL_OK ? e->turns - 1 : 0;
    for (int i = last; i >= 0 && status == PL_AGAIN; i--)
        if (i != first)
            status = take_from(e, i, out);
    return status;
}

static void received(pl_endpoint *e, pl_message *out)
{
    pl_peer_entry *entry = &e->peers.entries[out->from];
    out->who = entry->who;
    out->first = !entry->met;
    entry->met = true;
    entry->heard_at = ++e->peers.messages;
    e->counts.received_messages++;
    e->counts.received_bytes +=
        PL_FRAME_BYTES + (int64_t)out->frame.payload_bytes;
}

/* A client: why the server refused it for good, or NULL. */
static const char *refused(pl_endpoint *e)
{
    return e->rows[0]->refused != NULL ? e->rows[0]->refused(e->routes[0])
                                       : NULL;
}

pl_status pl_endpoint_poll(pl_endpoint *e, pl_message *out)
{
    out->lease = NULL;
    pl_status status = take(e, out);
    if (status == PL_OK) {
        received(e, out);
        return PL_OK;
    }
    const char *why = status == PL_AGAIN ? refused(e) : NULL;
    if (why != NULL)
        return PL_FAIL(PL_CLOSED, "%s: the server at %s %s", e->name,
                       e->address, why);
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
            return PL_FAIL(PL_TIMEOUT, "no message at %s in time", e->address);
        pl_endpoint_wait(&e, 1, deadline);
    }
}

void pl_endpoint_drop(pl_endpoint *e, pl_peer peer)
{
    pl_endpoint_downgrade(e, peer);
    pl_peers_drop(&e->peers, peer);
}

void pl_endpoint_keep(pl_endpoint *e, pl_peer peer)
{
    e->peers.entries[peer].kept = true;
}

const char *pl_endpoint_peer_text(pl_endpoint *e, pl_peer peer)
{
    PL_ASSERT(peer >= 0 && peer < e->peers.count);
    return e->server ? e->peers.entries[peer].address : e->address;
}
