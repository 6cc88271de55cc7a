/* What clients and servers share: sending; and the client's side of
 * receiving. */
#include "net/tcp/tcp.h"

#include "base/assert.h"
#include "base/error.h"
#include "base/mem.h"
#include "net/endpoint_priv.h"

#include <linux/sockios.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

static pl_status tcp_new(pl_tcp **out, pl_endpoint *e,
                         const pl_endpoint_opts *opts)
{
    PL_ASSERT(opts->keys == NULL || opts->self.role != PL_PRINCIPAL_NONE);
    pl_tcp *tcp;
    PL_TRY(PL_NEW(tcp, 1));
    tcp->route = (pl_route) { &pl_transport_tcp, e, 1 };
    tcp->listener = tcp->epoll = tcp->link.fd = tcp->dialer.notify = -1;
    tcp->has_keys = opts->keys != NULL;
    if (tcp->has_keys) {
        tcp->keys = *opts->keys;
        tcp->config.keys = &tcp->keys;
        tcp->config.self = opts->self;
    }
    tcp->config.server = e->server;
    *out = tcp;
    return PL_OK;
}

/* The user whose pump is shared, if any. */
static const pl_pump_user *beside(const pl_endpoint_opts *opts)
{
    const pl_tcp *tcp = opts->beside != NULL ? pl_tcp_of(opts->beside) : NULL;
    return tcp != NULL ? &tcp->user : NULL;
}

static pl_status start_listening(pl_tcp *tcp, const pl_endpoint_opts *opts)
{
    PL_TRY(pl_pump_join(&tcp->user, beside(opts), NULL, NULL));
    return pl_listener_open(tcp, opts);
}

static pl_status start_connecting(pl_tcp *tcp, const pl_endpoint_opts *opts)
{
    pl_address parts;
    PL_TRY(pl_address_split(&parts, opts->address));
    long port = strtol(parts.port, NULL, 10);
    if (port == 0)
        return PL_FAIL(PL_USAGE, "connect to %s: 0 is not a valid port",
                       opts->address);
    pl_dialer *dialer = &tcp->dialer;
    const pl_peer_entry *self = tcp->route.endpoint->peers.entries;
    tcp->link.peer = 0;
    if (tcp->has_keys)
        tcp->config.wanted = pl_endpoint_server(opts);
    tcp->config.port = (uint16_t)port;
    memcpy(tcp->config.identity, self->identity, PL_IDENTITY_BYTES);
    dialer->config = tcp->config;
    dialer->encrypt = opts->encrypt;
    dialer->address = parts;
    PL_TRY(pl_pump_join(&tcp->user, beside(opts), pl_dialer_step, dialer));
    PL_TRY(pl_dialer_init(dialer, &tcp->user, &tcp->link, &tcp->spares));
    return pl_pump_call(&tcp->user);
}

/* A client that has not reached its server yet gets time to do so. */
static void await_connection(pl_tcp *tcp, pl_deadline deadline)
{
    pl_pump *pump = tcp->user.pump;
    pl_mutex_lock(&pump->lock);
    while (atomic_load(&tcp->dialer.state) == PL_DIAL_TRYING &&
           tcp->link.outbox.first != NULL &&
           pl_cond_wait_until(&pump->changed, &pump->lock, deadline) == PL_OK)
        ;
    pl_mutex_unlock(&pump->lock);
}

/* Wait until the peer's kernel has received all that was written. */
static void await_kernel(int fd, pl_deadline deadline)
{
    int unsent = 0;
    while (fd >= 0 && ioctl(fd, SIOCOUTQ, &unsent) == 0 && unsent > 0 &&
           !pl_deadline_passed(deadline))
        poll(NULL, 0, 1);
}

/* A timeout here must not replace the error that the caller may report. */
static void finish_sending(pl_tcp *tcp, int linger_ms)
{
    pl_error before;
    pl_error_save(&before, PL_TIMEOUT);
    pl_deadline deadline = pl_deadline_in_ms(pl_clock_real(), linger_ms);
    if (!tcp->config.server)
        await_connection(tcp, deadline);
    pl_pump_finish(&tcp->user, deadline);
    for (int32_t i = 0; i < tcp->links_most && linger_ms > 0; i++)
        if (tcp->links != NULL && tcp->links[i] != NULL)
            await_kernel(tcp->links[i]->fd, deadline);
    if (linger_ms > 0)
        await_kernel(tcp->link.fd, deadline);
    (void)!pl_error_raise(&before);
}

static void tcp_close(pl_route *route, int linger_ms)
{
    pl_tcp *tcp = (pl_tcp *)route;
    if (tcp->user.pump != NULL) {
        finish_sending(tcp, linger_ms);
        pl_pump_withdraw(tcp->user.pump, &tcp->link);
    }
    pl_listener_close(tcp);
    pl_connection_hang_up(&tcp->link);
    pl_decoder_close(&tcp->link.decoder);
    pl_outbox_close(&tcp->link.outbox);
    pl_dialer_close(&tcp->dialer);
    if (tcp->user.pump != NULL)
        pl_pump_leave(&tcp->user);
    pl_mem_free(tcp->held.memory);
    pl_spares_close(&tcp->spares);
    pl_keys_wipe(&tcp->keys, sizeof tcp->keys);
    pl_mem_free(tcp);
}

static pl_status tcp_open(pl_route **out, pl_endpoint *e,
                          const pl_endpoint_opts *opts)
{
    pl_tcp *tcp;
    PL_TRY(tcp_new(&tcp, e, opts));
    pl_status status =
        e->server ? start_listening(tcp, opts) : start_connecting(tcp, opts);
    if (status != PL_OK)
        tcp_close(&tcp->route, 0);
    else
        *out = &tcp->route;
    return status;
}

/* --- sending -------------------------------------------------------------- */

/* The owner finds the connection lost. */
static pl_status lose(pl_tcp *tcp, pl_connection *c)
{
    if (!tcp->config.server)
        return pl_dialer_again(&tcp->dialer);
    pl_listener_drop(tcp, c);
    return PL_AGAIN;
}

/* Hand a message, or the rest of one, to the pump. */
static pl_status queue(pl_tcp *tcp, pl_connection *c,
                       const pl_outgoing *message, bool lasting, size_t sent)
{
    pl_pump *pump = tcp->user.pump;
    bool kick = false;
    pl_mutex_lock(&pump->lock);
    pl_status status = PL_OK;
    if (sent < pl_outgoing_bytes(message))
        status = pl_outbox_put(&c->outbox, message, lasting, sent);
    bool connected =
        tcp->config.server || atomic_load(&tcp->dialer.state) == PL_DIAL_READY;
    if (status == PL_OK && connected && !atomic_load(&c->busy)) {
        pl_pump_activate(&tcp->user, c);
        kick = true;
    }
    pl_mutex_unlock(&pump->lock);
    return kick ? pl_pump_kick(pump) : status;
}

static pl_connection *link_to(pl_tcp *tcp, pl_peer to)
{
    return tcp->config.server ? tcp->links[to] : &tcp->link;
}

static pl_status tcp_send(pl_route *route, pl_peer to, const pl_frame *frame,
                          const void *payload, bool lasting)
{
    pl_tcp *tcp = (pl_tcp *)route;
    pl_outgoing message;
    pl_connection *c = link_to(tcp, to);
    if (c == NULL)
        return PL_AGAIN;
    pl_outgoing_init(&message, frame, payload);
    bool connected =
        tcp->config.server || atomic_load(&tcp->dialer.state) == PL_DIAL_READY;
    if (frame->payload_bytes > PL_SMALL_BYTES || !connected ||
        atomic_load(&c->busy))
        return queue(tcp, c, &message, lasting, 0);
    size_t sent;
    switch (pl_outbox_write_now(&c->outbox, c->fd, &message, &sent)) {
    case PL_WRITE_DRAINED:
        return PL_OK;
    case PL_WRITE_BROKEN:
        PL_TRY(lose(tcp, c));
        return queue(tcp, c, &message, lasting, 0);
    default:
        return queue(tcp, c, &message, lasting, sent);
    }
}

/* --- receiving ------------------------------------------------------------ */

void pl_tcp_release(pl_tcp *tcp)
{
    if (tcp->held.memory != NULL)
        pl_spares_give(&tcp->spares, &tcp->held);
}

pl_status pl_tcp_judge(pl_tcp *tcp, pl_decoder_message *raw, pl_message *out)
{
    tcp->held = raw->body;
    pl_status status = pl_frame_read(&out->frame, raw->head, raw->head_bytes,
                                     raw->payload_bytes);
    if (status != PL_OK) {
        pl_tcp_release(tcp);
        return status;
    }
    out->payload = out->frame.payload_bytes > 0 ? raw->payload : NULL;
    return PL_OK;
}

/* Handle the dialer's errors and losses. */
static void listen_to_dialer(pl_tcp *tcp)
{
    pl_endpoint *e = tcp->route.endpoint;
    pl_dialer *dialer = &tcp->dialer;
    uint64_t value;
    char why[sizeof dialer->complaint];
    int32_t lost;
    if (read(dialer->notify, &value, sizeof value) != (ssize_t)sizeof value)
        return;
    if (pl_dialer_collect(dialer, why, &lost))
        pl_endpoint_refuse(e, e->address, why);
    e->counts.dropped_messages += lost;
}

/* A read after one that drained the socket would find nothing, so it is
 * skipped. Data that has arrived since is found by the next poll, or ends the
 * sleep before it. */
static pl_status read_more(pl_connection *c)
{
    bool drained = c->drained;
    c->drained = false;
    return drained ? PL_AGAIN : pl_connection_read(c);
}

static pl_status client_take(pl_tcp *tcp, pl_message *out)
{
    pl_endpoint *e = tcp->route.endpoint;
    pl_connection *c = &tcp->link;
    bool ready = atomic_load(&tcp->dialer.state) == PL_DIAL_READY;
    if (!ready || !tcp->was_ready)
        listen_to_dialer(tcp);
    tcp->was_ready = ready;
    if (!ready)
        return PL_AGAIN;
    for (;;) {
        pl_decoder_message raw;
        pl_status status = pl_decoder_next(&c->decoder, &raw);
        if (status == PL_OK) {
            status = pl_tcp_judge(tcp, &raw, out);
            if (status == PL_OK) {
                out->from = 0;
                return PL_OK;
            }
            pl_endpoint_refuse(e, e->address, pl_error_message());
            continue;
        }
        if (status == PL_AGAIN)
            status = read_more(c);
        else if (status == PL_FORMAT)
            pl_endpoint_refuse(e, e->address, pl_error_message());
        if (status == PL_OK)
            continue;
        if (status != PL_CLOSED && status != PL_FORMAT)
            return status;
        PL_TRY(pl_dialer_again(&tcp->dialer));
        return PL_AGAIN;
    }
}

static pl_status tcp_take(pl_route *route, pl_message *out)
{
    pl_tcp *tcp = (pl_tcp *)route;
    pl_tcp_release(tcp);
    return tcp->config.server ? pl_listener_take(tcp, out)
                              : client_take(tcp, out);
}

static const char *tcp_refused(pl_route *route)
{
    pl_tcp *tcp = (pl_tcp *)route;
    return !tcp->config.server &&
                   atomic_load(&tcp->dialer.state) == PL_DIAL_REFUSED
               ? tcp->dialer.refused
               : NULL;
}

static bool tcp_sleep(pl_route *route, struct pollfd *poll_out,
                      int64_t *until_ns)
{
    pl_tcp *tcp = (pl_tcp *)route;
    pl_pump_tidy(tcp->user.pump);
    if (tcp->config.server)
        return pl_listener_sleep(tcp, poll_out, until_ns);
    switch (atomic_load(&tcp->dialer.state)) {
    case PL_DIAL_READY:
        *poll_out = (struct pollfd) { tcp->link.fd, POLLIN, 0 };
        return !pl_decoder_holds(&tcp->link.decoder);
    case PL_DIAL_TRYING:
        *poll_out = (struct pollfd) { tcp->dialer.notify, POLLIN, 0 };
        return true;
    default:
        *poll_out = (struct pollfd) { -1, 0, 0 };
        return true;
    }
}

static int64_t tcp_busy_ns(const pl_route *route)
{
    const pl_tcp *tcp = (const pl_tcp *)route;
    bool ready =
        !tcp->config.server && atomic_load(&tcp->dialer.state) == PL_DIAL_READY;
    return ready ? pl_connection_busy_ns(&tcp->link) : -1;
}

const pl_transport pl_transport_tcp = {
    .name = "tcp",
    .open = tcp_open,
    .close = tcp_close,
    .send = tcp_send,
    .take = tcp_take,
    .sleep = tcp_sleep,
    .refused = tcp_refused,
    .busy_ns = tcp_busy_ns,
};

pl_tcp *pl_tcp_of(const pl_endpoint *e)
{
    pl_route *route = e->routes[0];
    return route->transport == &pl_transport_tcp ? (pl_tcp *)route : NULL;
}
