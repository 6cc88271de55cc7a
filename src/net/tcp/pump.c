/* Which connection is written to next, and when the thread sleeps and ends.
 *
 * P1  A connection is in `active` exactly while it is busy.
 * P2  `running` becomes false only under the lock, with nothing active and no
 *     chore left: whoever then adds something sees it and starts a thread. */
#include "net/tcp/pump.h"

#include "base/assert.h"
#include "base/mem.h"

#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#define IDLE_NS  1000000000ll /* then the thread ends */
#define RETRY_MS 10           /* when there is no memory to poll with */

void pl_pump_init(pl_pump *pump, pl_pump_chore *chore, void *context)
{
    *pump = (pl_pump) { .wake = -1, .chore = chore, .chore_context = context };
    pl_mutex_init(&pump->lock);
    pl_cond_init(&pump->changed);
}

/* --- the thread ----------------------------------------------------------- */

/* With the lock held, as the next three. */
static void unlink_active(pl_pump *pump, pl_connection *connection)
{
    pl_connection **at = &pump->active;
    while (*at != NULL && *at != connection)
        at = &(*at)->next_active;
    if (*at != NULL)
        *at = connection->next_active;
    connection->next_active = NULL;
}

static void append_active(pl_pump *pump, pl_connection *connection)
{
    pl_connection **at = &pump->active;
    while (*at != NULL)
        at = &(*at)->next_active;
    *at = connection;
    connection->next_active = NULL;
}

static void deactivate(pl_pump *pump, pl_connection *connection)
{
    unlink_active(pump, connection);
    atomic_store(&connection->busy, false);
}

/* What a turn of writing means for the connection. */
static void settle(pl_pump *pump, pl_connection *c, pl_write_result result)
{
    if (result == PL_WRITE_BROKEN) {
        c->broken = true;
        shutdown(c->fd, SHUT_RDWR); /* the owner's reading sees it */
    }
    if (result == PL_WRITE_DRAINED || result == PL_WRITE_BROKEN) {
        deactivate(pump, c);
    } else if (c->next_active != NULL) {
        unlink_active(pump, c);
        append_active(pump, c);
    }
}

/* One turn for each that has something to write; with the lock held, which is
 * released while bytes move.  Returns whether somebody can go on at once. */
static bool write_round(pl_pump *pump)
{
    bool more = false;
    size_t count = 0;
    for (pl_connection *c = pump->active; c != NULL; c = c->next_active)
        count++;
    for (size_t i = 0; i < count && pump->active != NULL && !pump->closing;
         i++) {
        /* The list may have changed meanwhile: take the first, put it last. */
        pl_connection *c = pump->active;
        c->writing = true;
        pl_mutex_unlock(&pump->lock);
        pl_write_result result =
            pl_outbox_write(&c->outbox, c->fd, &pump->lock);
        pl_mutex_lock(&pump->lock);
        c->writing = false;
        /* The owner may have added a message since the outbox was empty. */
        if (result == PL_WRITE_DRAINED && c->outbox.first != NULL)
            result = PL_WRITE_MORE;
        settle(pump, c, result);
        more = more || result == PL_WRITE_MORE;
        pl_cond_broadcast(&pump->changed);
    }
    return more;
}

/* With the lock held: fill in what to wait for.  Returns how many. */
static size_t collect_polls(pl_pump *pump)
{
    size_t count = 2;
    for (pl_connection *c = pump->active; c != NULL; c = c->next_active)
        count++;
    if (count > pump->polls_size) {
        struct pollfd *polls = pl_mem_resize(pump->polls, count, sizeof *polls);
        if (polls == NULL)
            return 0;
        pump->polls = polls;
        pump->polls_size = count;
    }
    struct pollfd *at = pump->polls;
    *at++ = (struct pollfd) { pump->wake, POLLIN, 0 };
    *at++ = (struct pollfd) { -1, 0, 0 };
    for (pl_connection *c = pump->active; c != NULL; c = c->next_active)
        *at++ = (struct pollfd) { c->fd, POLLOUT, 0 };
    return count;
}

static int milliseconds_until(int64_t until_ns)
{
    int64_t left = until_ns - pl_clock_now_ns(pl_clock_real());
    return left <= 0 ? 0 : (int)(left / 1000000 + 1);
}

/* With the lock held, which is released meanwhile. */
static void sleep_until(pl_pump *pump, const struct pollfd *chore,
                        int64_t until_ns, size_t count)
{
    int wake = pump->wake;
    pl_mutex_unlock(&pump->lock);
    if (count == 0) {
        poll(NULL, 0, RETRY_MS);
    } else {
        pump->polls[1] = *chore;
        poll(pump->polls, count, milliseconds_until(until_ns));
        if (pump->polls[0].revents != 0) {
            uint64_t value;
            ssize_t ignored = read(wake, &value, sizeof value);
            (void)ignored;
        }
    }
    pl_mutex_lock(&pump->lock);
}

static pl_status pump_main(void *arg)
{
    pl_pump *pump = arg;
    int64_t idle_since = -1;
    pl_mutex_lock(&pump->lock);
    while (!pump->closing) {
        struct pollfd chore = { -1, 0, 0 };
        int64_t until = -1;
        bool busy = false;
        pump->kicked = false;
        if (pump->chore != NULL) {
            pl_mutex_unlock(&pump->lock);
            busy = pump->chore(pump->chore_context, &chore, &until);
            pl_mutex_lock(&pump->lock);
        }
        if (write_round(pump) || pump->closing)
            continue;
        int64_t now = pl_clock_now_ns(pl_clock_real());
        busy = busy || pump->active != NULL;
        if (busy)
            idle_since = -1;
        else if (idle_since < 0)
            idle_since = now;
        else if (now - idle_since >= IDLE_NS && !pump->kicked)
            break;
        if (until < 0)
            until = now + IDLE_NS;
        sleep_until(pump, &chore, until, collect_polls(pump));
    }
    pump->running = false;
    pl_cond_broadcast(&pump->changed);
    pl_mutex_unlock(&pump->lock);
    return PL_OK;
}

/* --- the owner ------------------------------------------------------------ */

static void reap(pl_pump *pump)
{
    PL_ASSERT(pl_thread_join(pump->thread) == PL_OK);
    pump->thread = NULL;
    if (pump->wake >= 0)
        close(pump->wake);
    pump->wake = -1;
}

static pl_status start(pl_pump *pump)
{
    reap(pump);
    pump->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (pump->wake < 0)
        return PL_FAIL(PL_IO, "eventfd: %s", strerror(errno));
    pump->running = true;
    pl_status status = pl_thread_start(&pump->thread, "pump", pump_main, pump);
    if (status != PL_OK)
        pump->running = false;
    return status;
}

void pl_pump_tidy(pl_pump *pump)
{
    if (pump->thread == NULL)
        return;
    pl_mutex_lock(&pump->lock);
    bool running = pump->running;
    pl_mutex_unlock(&pump->lock);
    if (!running)
        reap(pump);
}

pl_status pl_pump_kick(pl_pump *pump)
{
    pl_mutex_lock(&pump->lock);
    bool running = pump->running;
    pump->kicked = true;
    pl_mutex_unlock(&pump->lock);
    if (!running)
        return start(pump);
    uint64_t one = 1;
    ssize_t ignored = write(pump->wake, &one, sizeof one);
    (void)ignored; /* full: it is awake */
    return PL_OK;
}

void pl_pump_activate(pl_pump *pump, pl_connection *connection)
{
    append_active(pump, connection);
    atomic_store(&connection->busy, true);
}

void pl_pump_withdraw(pl_pump *pump, pl_connection *connection)
{
    pl_mutex_lock(&pump->lock);
    while (connection->writing) {
        pl_status status =
            pl_cond_wait_until(&pump->changed, &pump->lock,
                               pl_deadline_in_ms(pl_clock_real(), 1000));
        (void)status; /* a write never waits: it ends soon */
    }
    deactivate(pump, connection);
    pl_mutex_unlock(&pump->lock);
}

void pl_pump_stop(pl_pump *pump, pl_deadline deadline)
{
    pl_mutex_lock(&pump->lock);
    while (pump->running && pump->active != NULL &&
           pl_cond_wait_until(&pump->changed, &pump->lock, deadline) == PL_OK)
        ;
    pump->closing = true;
    bool running = pump->running;
    pl_mutex_unlock(&pump->lock);
    if (running) {
        pl_status status = pl_pump_kick(pump);
        (void)status;
    }
    reap(pump);
}

void pl_pump_close(pl_pump *pump)
{
    pl_mem_free(pump->polls);
    pl_cond_close(&pump->changed);
    pl_mutex_close(&pump->lock);
}
