/* When to connect, and how to judge the result.
 *
 *   WAIT   until the next attempt
 *   KNOCK  connect() is under way
 *   SHAKE  the handshake is under way
 *   REST   the connection belongs to the owner, or the server refused
 *
 *   D1  The connection belongs to one side at a time: to the pump's thread
 *       while the dialer tries, to the owner from READY until it asks to dial
 *       again.
 *   D2  An attempt that hangs ends: connect() after 5 s, the handshake after
 *       30 s.
 *   D3  After each failure the delay grows, up to 1 s to 1.5 s at random; a
 *       connection that ended within a second counts as a failure.
 *   D4  A permanent refusal ends the attempts.
 *   D5  Messages in the outbox are kept for the next connection; one that was
 *       sent in part is counted as lost. */
#include "net/tcp/dialer.h"

#include "base/rng.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#define MS            1000000ll
#define FIRST_WAIT_NS (10 * MS)
#define MOST_WAIT_NS  (1000 * MS)
#define KNOCK_NS      (5000 * MS)
/* A server answers when its owner polls; it may be computing. */
#define SHAKE_NS      (30000 * MS)
#define RESOLVE_EVERY 4 /* failures; a name may move to another host */

enum {
    WAIT,
    KNOCK,
    SHAKE,
    REST
};

pl_status pl_dialer_init(pl_dialer *d, pl_pump_user *user, pl_connection *link,
                         pl_spares *spares)
{
    d->user = user;
    d->link = link;
    d->spares = spares;
    d->phase = WAIT;
    d->random = (uint64_t)pl_clock_wall_ns() ^ (uint64_t)(uintptr_t)d;
    d->notify = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (d->notify < 0)
        return PL_FAIL(PL_IO, "eventfd: %s", strerror(errno));
    return PL_OK;
}

void pl_dialer_close(pl_dialer *d)
{
    if (d->notify >= 0)
        close(d->notify);
    d->notify = -1;
}

static void ring(pl_dialer *d)
{
    uint64_t one = 1;
    ssize_t ignored = write(d->notify, &one, sizeof one);
    (void)ignored;
}

static void hang_up(pl_dialer *d)
{
    if (d->link->fd >= 0)
        close(d->link->fd);
    d->link->fd = -1;
}

/* Retry later, with a delay that grows up to a second, plus up to half of it at
 * random so that clients do not connect all at once. */
static void fail(pl_dialer *d)
{
    hang_up(d);
    int shift = d->failures < 7 ? d->failures : 7;
    int64_t wait = FIRST_WAIT_NS << shift;
    if (wait > MOST_WAIT_NS)
        wait = MOST_WAIT_NS;
    d->failures++;
    wait += (int64_t)pl_rng_below(d->random, (uint64_t)d->failures,
                                  (uint32_t)(wait / 2));
    d->next_ns = pl_clock_now_ns(pl_clock_real()) + wait;
    d->phase = WAIT;
}

static void complain(pl_dialer *d, const char *why)
{
    pl_mutex_lock(&d->user->pump->lock);
    snprintf(d->complaint, sizeof d->complaint, "%s", why);
    d->complained = true;
    pl_mutex_unlock(&d->user->pump->lock);
    ring(d);
}

static bool need_address(pl_dialer *d)
{
    if (d->resolved && d->failures % RESOLVE_EVERY != 0)
        return true;
    if (pl_address_resolve(&d->address) != PL_OK)
        return d->resolved; /* keep the old address */
    d->resolved = true;
    return true;
}

/* Choose the mechanism by the current address of the name. */
static void choose_mechanism(pl_dialer *d)
{
    if (d->config.keys == NULL)
        d->config.mechanism = PL_MECHANISM_NONE;
    else if (pl_address_is_loopback(&d->address) && !d->encrypt)
        d->config.mechanism = PL_MECHANISM_PROOF;
    else
        d->config.mechanism = PL_MECHANISM_ENCRYPTED;
}

static void greet(pl_dialer *d)
{
    uint8_t hello[PL_HANDSHAKE_BYTES];
    pl_connection *c = d->link;
    pl_connection_tune(c->fd);
    choose_mechanism(d);
    c->have = 0;
    if (pl_handshake_begin(&c->handshake, &d->config, hello) != PL_OK ||
        send(c->fd, hello, sizeof hello, MSG_NOSIGNAL) !=
            (ssize_t)sizeof hello) {
        fail(d);
        return;
    }
    d->phase = SHAKE;
    d->deadline_ns = pl_clock_now_ns(pl_clock_real()) + SHAKE_NS;
}

static void dial(pl_dialer *d)
{
    struct sockaddr_storage to;
    socklen_t size;
    if (!need_address(d)) {
        fail(d);
        return;
    }
    pl_address_socket(&d->address, &to, &size);
    d->link->fd =
        socket(to.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (d->link->fd < 0) {
        fail(d);
        return;
    }
    d->phase = KNOCK;
    d->deadline_ns = pl_clock_now_ns(pl_clock_real()) + KNOCK_NS;
    if (connect(d->link->fd, (struct sockaddr *)&to, size) == 0)
        greet(d);
    else if (errno != EINPROGRESS)
        fail(d);
}

/* connect() has finished or timed out. */
static void knock(pl_dialer *d)
{
    struct pollfd poll_one = { d->link->fd, POLLOUT, 0 };
    int error = 0;
    socklen_t size = sizeof error;
    if (poll(&poll_one, 1, 0) == 0) {
        if (pl_clock_now_ns(pl_clock_real()) >= d->deadline_ns)
            fail(d);
        return;
    }
    if (getsockopt(d->link->fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0 ||
        error != 0)
        fail(d);
    else
        greet(d);
}

static void arrive(pl_dialer *d)
{
    pl_mutex_lock(&d->user->pump->lock);
    d->arrived_ns = pl_clock_now_ns(pl_clock_real());
    d->phase = REST;
    d->link->broken = false;
    if (!pl_outbox_empty(&d->link->outbox))
        pl_pump_activate(d->user, d->link);
    atomic_store(&d->state, PL_DIAL_READY);
    pl_cond_broadcast(&d->user->pump->changed);
    pl_mutex_unlock(&d->user->pump->lock);
    ring(d);
}

static void give_up(pl_dialer *d)
{
    hang_up(d);
    pl_mutex_lock(&d->user->pump->lock);
    snprintf(d->refused, sizeof d->refused, "%s", d->link->handshake.why);
    d->phase = REST;
    atomic_store(&d->state, PL_DIAL_REFUSED);
    pl_cond_broadcast(&d->user->pump->changed);
    pl_mutex_unlock(&d->user->pump->lock);
    ring(d);
}

/* The handshake is done.  Without keys, on loopback, it must have been with a
 * process of our user. */
static void conclude(pl_dialer *d)
{
    pl_verdict verdict = PL_VERDICT_WELCOME;
    if (d->config.mechanism == PL_MECHANISM_NONE &&
        pl_address_is_loopback(&d->address) &&
        !pl_connection_judge_user(d->link->fd, &verdict)) {
        pl_decoder_close(&d->link->decoder);
        fail(d); /* it has closed again */
        return;
    }
    if (verdict == PL_VERDICT_WELCOME) {
        arrive(d);
        return;
    }
    snprintf(d->link->handshake.why, sizeof d->link->handshake.why, "%s",
             verdict == PL_VERDICT_USER
                 ? "runs as another user of this host: give all tasks of the "
                   "job one key file with --keys"
                 : "may run as any user, this system does not tell: give all "
                   "tasks of the job one key file with --keys");
    give_up(d);
}

static void shake(pl_dialer *d)
{
    bool closed;
    switch (pl_connection_shake(d->link, &d->config, PL_VERDICT_WELCOME,
                                d->spares, &closed)) {
    case PL_HANDSHAKE_MORE:
        if (pl_clock_now_ns(pl_clock_real()) >= d->deadline_ns)
            fail(d);
        break;
    case PL_HANDSHAKE_DONE:
        conclude(d);
        break;
    case PL_HANDSHAKE_REFUSED:
        if (d->link->handshake.final) {
            give_up(d);
            break;
        }
        complain(d, d->link->handshake.why);
        fail(d);
        break;
    }
}

/* The owner has lost the connection.  After one that ended at once, wait before
 * dialing again: the server may do the same each time. */
static void begin_again(pl_dialer *d)
{
    int64_t now = pl_clock_now_ns(pl_clock_real());
    if (now - d->arrived_ns < MOST_WAIT_NS) {
        fail(d);
        return;
    }
    d->failures = 0;
    d->phase = WAIT;
    d->next_ns = 0;
}

bool pl_dialer_step(void *context, struct pollfd *poll_out, int64_t *until_ns)
{
    pl_dialer *d = context;
    if (atomic_load(&d->state) != PL_DIAL_TRYING)
        return false;
    if (d->phase == REST)
        begin_again(d);
    if (d->phase == SHAKE)
        shake(d);
    else if (d->phase == KNOCK)
        knock(d);
    if (d->phase == WAIT && pl_clock_now_ns(pl_clock_real()) >= d->next_ns)
        dial(d);
    switch (d->phase) {
    case WAIT:
        *until_ns = d->next_ns;
        return true;
    case REST:
        return false;
    default:
        *poll_out = (struct pollfd) { d->link->fd,
                                      d->phase == KNOCK ? POLLOUT : POLLIN, 0 };
        *until_ns = d->deadline_ns;
        return true;
    }
}

pl_status pl_dialer_again(pl_dialer *d)
{
    pl_pump_withdraw(d->user->pump, d->link);
    hang_up(d);
    pl_decoder_close(&d->link->decoder);
    d->link->drained = false;
    pl_mutex_lock(&d->user->pump->lock);
    d->lost += pl_outbox_restart(&d->link->outbox);
    atomic_store(&d->state, PL_DIAL_TRYING);
    pl_mutex_unlock(&d->user->pump->lock);
    return pl_pump_call(d->user);
}

bool pl_dialer_collect(pl_dialer *d, char why[128], int32_t *lost)
{
    pl_mutex_lock(&d->user->pump->lock);
    bool complained = d->complained;
    if (complained)
        snprintf(why, 128, "%s", d->complaint);
    *lost = d->lost;
    d->complained = false;
    d->lost = 0;
    pl_mutex_unlock(&d->user->pump->lock);
    return complained;
}
