/* What clients and servers have in common: sending, and the client's side of
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

static pl_status tcp_new(pl_endpoint *e, const pl_endpoint_opts *opts)
{
    PL_ASSERT(opts->keys == NULL || opts->self.role != PL_PRINCIPAL_NONE);
    pl_tcp *tcp;
    PL_TRY(PL_NEW(tcp, 1));
    e->tcp = tcp;
    tcp->listener = tcp->epoll = tcp->link.fd = tcp->dialer.notify = -1;
    snprintf(tcp->address, sizeof tcp->address, "%s", opts->address);
    tcp->has_keys = opts->keys != NULL;
    if (tcp->has_keys) {
        tcp->keys = *opts->keys;
        tcp->config.keys = &tcp->keys;
        tcp->config.self = opts->self;
    }
    tcp->config.server = e->server;
    return PL_OK;
}

/* Whose pump is shared, if any. */
static const pl_pump_user *beside(const pl_endpoint_opts *opts)
{
    return opts->beside != NULL ? &opts->beside->tcp->user : NULL;
}

pl_status pl_tcp_listen(pl_endpoint *e, const pl_endpoint_opts *opts)
{
    PL_TRY(tcp_new(e, opts));
    PL_TRY(pl_pump_join(&e->tcp->user, beside(opts), NULL, NULL));
    return pl_listener_open(e, opts);
}

pl_principal pl_tcp_server(const pl_endpoint_opts *opts)
{
    return (pl_principal) { opts->to_worker ? PL_PRINCIPAL_WORKER
                                            : PL_PRINCIPAL_PS,
                            opts->server };
}

pl_status pl_tcp_connect(pl_endpoint *e, const pl_endpoint_opts *opts,
                         const uint8_t identity[PL_IDENTITY_BYTES])
{
    pl_address parts;
    PL_TRY(pl_address_split(&parts, opts->address));
    long port = strtol(parts.port, NULL, 10);
    if (port == 0)
        return PL_FAIL(PL_USAGE, "connect to %s: port 0 is no port",
                       opts->address);
    PL_TRY(tcp_new(e, opts));
    pl_tcp *tcp = e->tcp;
    pl_dialer *dialer = &tcp->dialer;
    tcp->link.peer = 0;
    if (tcp->has_keys)
        tcp->config.wanted = pl_tcp_server(opts);
    tcp->config.port = (uint16_t)port;
    memcpy(tcp->config.identity, identity, PL_IDENTITY_BYTES);
    dialer->config = tcp->config;
    dialer->encrypt = opts->encrypt;
    dialer->address = parts;
    PL_TRY(pl_pump_join(&tcp->user, beside(opts), pl_dialer_step, dialer));
    PL_TRY(pl_dialer_init(dialer, &tcp->user, &tcp->link, &tcp->spares));
    return pl_pump_call(&tcp->user);
}

/* A client that has not reached its server yet is given the time to. */
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

/* Wait until the peer's kernel has what ours was given. */
static void await_kernel(int fd, pl_deadline deadline)
{
    int unsent = 0;
    while (fd >= 0 && ioctl(fd, SIOCOUTQ, &unsent) == 0 && unsent > 0 &&
           !pl_deadline_passed(deadline))
        poll(NULL, 0, 1);
}

/* Waiting in vain is not the failure that the caller may be about to tell. */
static void finish_sending(pl_endpoint *e, int linger_ms)
{
    pl_tcp *tcp = e->tcp;
    pl_error before;
    pl_error_save(&before, PL_TIMEOUT);
    pl_deadline deadline = pl_deadline_in_ms(pl_clock_real(), linger_ms);
    if (!e->server)
        await_connection(tcp, deadline);
    pl_pump_finish(&tcp->user, deadline);
    for (int32_t i = 0; i < tcp->links_most && linger_ms > 0; i++)
        if (tcp->links != NULL && tcp->links[i] != NULL)
            await_kernel(tcp->links[i]->fd, deadline);
    if (linger_ms > 0)
        await_kernel(tcp->link.fd, deadline);
    (void)!pl_error_raise(&before);
}

void pl_tcp_close(pl_endpoint *e, int linger_ms)
{
    pl_tcp *tcp = e->tcp;
    if (tcp == NULL)
        return;
    if (tcp->user.pump != NULL) {
        finish_sending(e, linger_ms);
        pl_pump_withdraw(tcp->user.pump, &tcp->link);
    }
    pl_listener_close(e);
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
    e->tcp = NULL;
}

/* --- sending -------------------------------------------------------------- */

/* The owner finds the connection gone. */
static pl_status lose(pl_endpoint *e, pl_connection *c)
{
    if (!e->server)
        return pl_dialer_again(&e->tcp->dialer);
    pl_listener_drop(e, c);
    return PL_AGAIN;
}

/* Hand a message, or the rest of one, to the pump. */
static pl_status queue(pl_endpoint *e, pl_connection *c,
                       const pl_outgoing *message, bool lasting, size_t sent)
{
    pl_tcp *tcp = e->tcp;
    pl_pump *pump = tcp->user.pump;
    bool kick = false;
    pl_mutex_lock(&pump->lock);
    pl_status status = PL_OK;
    if (sent < pl_outgoing_bytes(message))
        status = pl_outbox_put(&c->outbox, message, lasting, sent);
    bool connected =
        e->server || atomic_load(&tcp->dialer.state) == PL_DIAL_READY;
    if (status == PL_OK && connected && !atomic_load(&c->busy)) {
        pl_pump_activate(&tcp->user, c);
        kick = true;
    }
    pl_mutex_unlock(&pump->lock);
    return kick ? pl_pump_kick(pump) : status;
}

static pl_connection *link_to(pl_endpoint *e, pl_peer to)
{
    return e->server ? e->tcp->links[to] : &e->tcp->link;
}

pl_status pl_tcp_send(pl_endpoint *e, pl_peer to, const pl_frame *frame,
                      const void *payload, bool lasting)
{
    pl_outgoing message;
    pl_connection *c = link_to(e, to);
    if (c == NULL)
        return PL_AGAIN;
    pl_outgoing_init(&message, frame, payload);
    bool connected =
        e->server || atomic_load(&e->tcp->dialer.state) == PL_DIAL_READY;
    if (frame->payload_bytes > PL_SMALL_BYTES || !connected ||
        atomic_load(&c->busy))
        return queue(e, c, &message, lasting, 0);
    size_t sent;
    switch (pl_outbox_write_now(&c->outbox, c->fd, &message, &sent)) {
    case PL_WRITE_DRAINED:
        return PL_OK;
    case PL_WRITE_BROKEN:
        PL_TRY(lose(e, c));
        return queue(e, c, &message, lasting, 0);
    default:
        return queue(e, c, &message, lasting, sent);
    }
}

/* --- receiving ------------------------------------------------------------ */

void pl_tcp_release(pl_endpoint *e)
{
    if (e->tcp != NULL && e->tcp->held.memory != NULL)
        pl_spares_give(&e->tcp->spares, &e->tcp->held);
}

pl_status pl_tcp_judge(pl_endpoint *e, pl_decoder_message *raw, pl_message *out)
{
    e->tcp->held = raw->body;
    pl_status status = pl_frame_read(&out->frame, raw->head, raw->head_bytes,
                                     raw->payload_bytes);
    if (status != PL_OK) {
        pl_tcp_release(e);
        return status;
    }
    out->payload = out->frame.payload_bytes > 0 ? raw->payload : NULL;
    return PL_OK;
}

/* What the dialer has to say. */
static void listen_to_dialer(pl_endpoint *e)
{
    pl_dialer *dialer = &e->tcp->dialer;
    uint64_t value;
    char why[sizeof dialer->complaint];
    int32_t lost;
    if (read(dialer->notify, &value, sizeof value) != (ssize_t)sizeof value)
        return;
    if (pl_dialer_collect(dialer, why, &lost))
        pl_endpoint_refuse(e, e->tcp->address, why);
    e->counts.dropped_messages += lost;
}

static pl_status client_take(pl_endpoint *e, pl_message *out)
{
    pl_tcp *tcp = e->tcp;
    pl_connection *c = &tcp->link;
    bool ready = atomic_load(&tcp->dialer.state) == PL_DIAL_READY;
    if (!ready || !tcp->was_ready)
        listen_to_dialer(e);
    tcp->was_ready = ready;
    if (!ready)
        return PL_AGAIN;
    for (;;) {
        pl_decoder_message raw;
        pl_status status = pl_decoder_next(&c->decoder, &raw);
        if (status == PL_OK) {
            status = pl_tcp_judge(e, &raw, out);
            if (status == PL_OK) {
                out->from = 0;
                return PL_OK;
            }
            pl_endpoint_refuse(e, tcp->address, pl_error_message());
            continue;
        }
        if (status == PL_AGAIN)
            status = pl_connection_read(c);
        else if (status == PL_FORMAT)
            pl_endpoint_refuse(e, tcp->address, pl_error_message());
        if (status == PL_OK)
            continue;
        if (status != PL_CLOSED && status != PL_FORMAT)
            return status;
        PL_TRY(pl_dialer_again(&tcp->dialer));
        return PL_AGAIN;
    }
}

pl_status pl_tcp_take(pl_endpoint *e, pl_message *out)
{
    pl_status status =
        e->server ? pl_listener_take(e, out) : client_take(e, out);
    if (status != PL_OK)
        return status;
    pl_peer_entry *entry = &e->peers.entries[out->from];
    out->first = !entry->met;
    entry->met = true;
    pl_endpoint_received(e, &out->frame);
    return PL_OK;
}

const char *pl_tcp_refused(pl_endpoint *e)
{
    return !e->server && atomic_load(&e->tcp->dialer.state) == PL_DIAL_REFUSED
               ? e->tcp->dialer.refused
               : NULL;
}

bool pl_tcp_sleep(pl_endpoint *e, struct pollfd *poll_out, int64_t *until_ns)
{
    *until_ns = INT64_MAX;
    pl_pump_tidy(e->tcp->user.pump);
    if (e->server)
        return pl_listener_sleep(e, poll_out, until_ns);
    pl_tcp *tcp = e->tcp;
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

void pl_tcp_cut(pl_endpoint *e, pl_peer peer)
{
    if (e->server && e->tcp->links[peer] != NULL)
        pl_listener_drop(e, e->tcp->links[peer]);
}
