/* Which connection is written to next, which chore runs, and when the thread
 * sleeps and ends.
 *
 * P1  A connection is in `active` exactly while it is busy.
 * P2  `running` becomes false only under the lock, with nothing active and no
 *     chore left: the caller that adds the next one starts another thread.
 * P3  A chore that was requested while it ran is called again.
 * P4  After finish the chore of that user no longer runs. */
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

/* --- writing; with the lock held ---------------------------------------- */

static void unlink_active(pl_pump *pump, pl_connection *connection)
{
    pl_connection **at = &pump->active, *before = NULL;
    while (*at != NULL && *at != connection) {
        before = *at;
        at = &before->next_active;
    }
    if (*at == NULL)
        return;
    *at = connection->next_active;
    if (pump->last_active == connection)
        pump->last_active = before;
    connection->next_active = NULL;
}

static void append_active(pl_pump *pump, pl_connection *connection)
{
    *(pump->active != NULL ? &pump->last_active->next_active : &pump->active) =
        connection;
    pump->last_active = connection;
    connection->next_active = NULL;
}

static void deactivate(pl_pump *pump, pl_connection *connection)
{
    if (!atomic_load(&connection->busy))
        return;
    unlink_active(pump, connection);
    connection->user->active--;
    atomic_store(&connection->busy, false);
}

/* What a turn of writing means for the connection. */
static void settle(pl_pump *pump, pl_connection *c, pl_write_result result)
{
    if (result == PL_WRITE_BROKEN) {
        c->broken = true;
        shutdown(c->fd, SHUT_RDWR); /* the owner's next read fails */
    }
    if (result == PL_WRITE_DRAINED || result == PL_WRITE_BROKEN) {
        deactivate(pump, c);
    } else if (c->next_active != NULL) {
        unlink_active(pump, c);
        append_active(pump, c);
    }
}

/* One turn for each that has something to write; the lock is released while
 * bytes move.  Returns whether one of them can continue at once. */
static bool write_round(pl_pump *pump)
{
    bool more = false;
    size_t count = 0;
    for (pl_connection *c = pump->active; c != NULL; c = c->next_active)
        count++;
    for (size_t i = 0; i < count && pump->active != NULL && !pump->closing;
         i++) {
        /* The list may have changed meanwhile: take the first, append it. */
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

/* --- chores; with the lock held --------------------------------------------
 */

static void list_chore(pl_pump_user *user)
{
    user->called = true;
    if (user->listed)
        return;
    user->listed = true;
    user->slot = 0;
    user->next = user->pump->chores;
    user->pump->chores = user;
}

static void unlist_chore(pl_pump_user *user)
{
    pl_pump_user **at = &user->pump->chores;
    while (*at != NULL && *at != user)
        at = &(*at)->next;
    if (*at != NULL)
        *at = user->next;
    user->listed = false;
}

static bool is_due(const pl_pump_user *user, int64_t now_ns)
{
    return user->called ||
           (user->slot > 0 && user->pump->polls[user->slot].revents != 0) ||
           (user->until_ns >= 0 && now_ns >= user->until_ns);
}

/* The lock is released while a chore is done. */
static void do_chore(pl_pump_user *user)
{
    pl_pump *pump = user->pump;
    user->called = false;
    user->working = true;
    user->poll = (struct pollfd) { -1, 0, 0 };
    user->until_ns = -1;
    pl_mutex_unlock(&pump->lock);
    bool more = user->chore(user->context, &user->poll, &user->until_ns);
    pl_mutex_lock(&pump->lock);
    user->working = false;
    user->slot = 0;
    if (!more && !user->called)
        unlist_chore(user);
    pl_cond_broadcast(&pump->changed);
}

/* Run the chores that are due.  *until_ns: when the next one is. */
static void do_chores(pl_pump *pump, int64_t *until_ns)
{
    int64_t now = pl_clock_now_ns(pl_clock_real());
    for (pl_pump_user *user = pump->chores, *next; user != NULL; user = next) {
        if (is_due(user, now))
            do_chore(user);
        next = user->next; /* the lock is held since the chore ended */
        if (user->listed && user->until_ns >= 0 &&
            (*until_ns < 0 || user->until_ns < *until_ns))
            *until_ns = user->until_ns;
    }
}

/* --- the thread ------------------------------------------------------------
 */

/* With the lock held: make a list of what to wait for.  Returns how many. */
static size_t collect_polls(pl_pump *pump)
{
    size_t count = 1;
    for (pl_pump_user *user = pump->chores; user != NULL; user = user->next)
        count++;
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
    for (pl_pump_user *user = pump->chores; user != NULL; user = user->next) {
        user->slot = (size_t)(at - pump->polls);
        *at++ = user->poll;
    }
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
static void sleep_until(pl_pump *pump, int64_t until_ns)
{
    size_t count = collect_polls(pump);
    int wake = pump->wake;
    pl_mutex_unlock(&pump->lock);
    if (count == 0) {
        poll(NULL, 0, RETRY_MS);
    } else {
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
        int64_t until = -1;
        pump->kicked = false;
        do_chores(pump, &until);
        if (write_round(pump) || pump->closing)
            continue;
        int64_t now = pl_clock_now_ns(pl_clock_real());
        if (pump->chores != NULL || pump->active != NULL)
            idle_since = -1;
        else if (idle_since < 0)
            idle_since = now;
        else if (now - idle_since >= IDLE_NS && !pump->kicked)
            break;
        sleep_until(pump, until >= 0 ? until : now + IDLE_NS);
    }
    pump->running = false;
    pl_cond_broadcast(&pump->changed);
    pl_mutex_unlock(&pump->lock);
    return PL_OK;
}

/* --- the owner -------------------------------------------------------------
 */

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

static pl_status pump_new(pl_pump **out)
{
    pl_pump *pump;
    PL_TRY(PL_NEW(pump, 1));
    pump->wake = -1;
    pl_mutex_init(&pump->lock);
    pl_cond_init(&pump->changed);
    *out = pump;
    return PL_OK;
}

static void pump_free(pl_pump *pump)
{
    pl_mutex_lock(&pump->lock);
    pump->closing = true;
    bool running = pump->running;
    pl_mutex_unlock(&pump->lock);
    if (running) {
        pl_status status = pl_pump_kick(pump);
        (void)status;
    }
    reap(pump);
    pl_mem_free(pump->polls);
    pl_cond_close(&pump->changed);
    pl_mutex_close(&pump->lock);
    pl_mem_free(pump);
}

pl_status pl_pump_join(pl_pump_user *user, const pl_pump_user *beside,
                       pl_pump_chore *chore, void *context)
{
    *user = (pl_pump_user) { .chore = chore, .context = context };
    if (beside != NULL)
        user->pump = beside->pump;
    else
        PL_TRY(pump_new(&user->pump));
    user->pump->users++;
    return PL_OK;
}

void pl_pump_finish(pl_pump_user *user, pl_deadline deadline)
{
    pl_pump *pump = user->pump;
    pl_mutex_lock(&pump->lock);
    while (pump->running && user->active > 0 &&
           pl_cond_wait_until(&pump->changed, &pump->lock, deadline) == PL_OK)
        ;
    while (user->working) {
        pl_status status =
            pl_cond_wait_until(&pump->changed, &pump->lock,
                               pl_deadline_in_ms(pl_clock_real(), 1000));
        (void)status; /* it ends: a chore waits only for name resolution */
    }
    unlist_chore(user);
    user->chore = NULL;
    pl_mutex_unlock(&pump->lock);
}

void pl_pump_leave(pl_pump_user *user)
{
    pl_pump *pump = user->pump;
    PL_ASSERT(user->active == 0 && !user->listed);
    user->pump = NULL;
    if (--pump->users == 0)
        pump_free(pump);
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
    (void)ignored; /* full: the thread is awake */
    return PL_OK;
}

pl_status pl_pump_call(pl_pump_user *user)
{
    pl_mutex_lock(&user->pump->lock);
    list_chore(user);
    pl_mutex_unlock(&user->pump->lock);
    return pl_pump_kick(user->pump);
}

void pl_pump_activate(pl_pump_user *user, pl_connection *connection)
{
    append_active(user->pump, connection);
    connection->user = user;
    user->active++;
    atomic_store(&connection->busy, true);
}

void pl_pump_withdraw(pl_pump *pump, pl_connection *connection)
{
    pl_mutex_lock(&pump->lock);
    while (connection->writing) {
        pl_status status =
            pl_cond_wait_until(&pump->changed, &pump->lock,
                               pl_deadline_in_ms(pl_clock_real(), 1000));
        (void)status; /* a write never blocks: it ends soon */
    }
    deactivate(pump, connection);
    pl_mutex_unlock(&pump->lock);
}
