/* The shell around the ring's core: endpoints, clock, and which of two threads
 * drives (see engine.h). */
#include "sync/allreduce/ring/engine.h"

#include "base/assert.h"
#include "base/error.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/thread.h"
#include "job/member/incarnation.h"
#include "sync/allreduce/ring/core.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define LINGER_MS 1000 /* for the last message to leave */
#define TICK_NS   INT64_C(100000000)
#define SAY_NS    INT64_C(5000000000)
#define SPIN_NS   INT64_C(20000) /* before sleeping, in shared memory */

typedef enum driver {
    NOBODY,
    CALLER,
    OWN, /* the engine's thread */
} driver;

typedef struct engine {
    pl_collective base;
    pl_ring_engine_opts opts;
    char name[32];
    pl_area *area;
    pl_endpoint *hub, *next;   /* NULL: the chief; not yet connected */
    pl_endpoint_counts closed; /* of connections to earlier next workers */
    pl_ring_core *core;
    int64_t next_tick_ns;
    pl_error failed; /* of the network; PL_OK: none */
    bool shared;     /* shares memory with the next worker */
    int wake;        /* an event descriptor */
    pl_thread *thread;
    pl_mutex lock;
    pl_cond changed;
    /* Guarded by lock. */
    driver driver;
    bool wanted; /* the caller wants to drive */
    bool flight; /* sums are under way that no call waits for */
    bool stopping;
} engine;

static int64_t now_ns(void)
{
    return pl_clock_now_ns(pl_clock_real());
}

/* --- what the core sends ----------------------------------------------- */

static pl_endpoint *endpoint_of(const engine *self, int32_t to)
{
    return to == PL_RING_HUB    ? self->hub
           : to == PL_RING_NEXT ? self->next
                                : self->opts.listen;
}

static pl_peer peer_of(int32_t to)
{
    return to < 0 ? 0 : to;
}

static void complain(const engine *self, pl_status status)
{
    if (status != PL_OK)
        pl_log(PL_LOG_WARN, "%s: %s", self->name, pl_error_message());
}

static void send_out(void *context, int32_t to, const pl_frame *frame,
                     const void *payload, bool lasting)
{
    engine *self = context;
    pl_endpoint *endpoint = endpoint_of(self, to);
    if (endpoint != NULL)
        complain(self, pl_endpoint_send(endpoint, peer_of(to), frame, payload,
                                        lasting));
}

static pl_status connect_to(engine *self, int32_t worker, pl_area *area,
                            pl_endpoint **out)
{
    return pl_endpoint_connect(
        out, &(pl_endpoint_opts) {
                 .address = self->opts.cluster->worker_address[worker],
                 .name = self->name,
                 .area = area,
                 .transport = self->opts.transport,
                 .keys = self->opts.keys,
                 .self = { PL_PRINCIPAL_WORKER, self->opts.worker },
                 .server = worker,
                 .to_worker = true,
                 .encrypt = self->opts.encrypt,
             });
}

static void count(pl_endpoint_counts *sum, const pl_endpoint *endpoint)
{
    if (endpoint == NULL)
        return;
    pl_endpoint_counts more = pl_endpoint_count(endpoint);
    sum->sent_bytes += more.sent_bytes;
    sum->received_bytes += more.received_bytes;
    sum->sent_messages += more.sent_messages;
    sum->received_messages += more.received_messages;
}

static void follow(void *context, int32_t worker)
{
    engine *self = context;
    count(&self->closed, self->next);
    pl_endpoint_free(self->next, 0);
    self->next = NULL;
    pl_status status = connect_to(self, worker, self->area, &self->next);
    if (status != PL_OK && self->failed.status == PL_OK)
        pl_error_save(&self->failed, status);
}

static void make_offer(void *context, int32_t to, char offer[PL_OFFER_BYTES])
{
    engine *self = context;
    pl_endpoint *endpoint = endpoint_of(self, to);
    if (endpoint != NULL)
        complain(self, pl_endpoint_offer(endpoint, offer));
}

static void accept_offer(void *context, pl_peer peer, const char *offer,
                         char answer[PL_OFFER_BYTES])
{
    engine *self = context;
    memset(answer, 0, PL_OFFER_BYTES);
    complain(self, pl_endpoint_accept(self->opts.listen, peer, offer, answer));
}

static void complete_offer(void *context, int32_t to, const char *answer)
{
    engine *self = context;
    complain(self, pl_endpoint_complete(endpoint_of(self, to), answer));
}

static void drop_peer(void *context, pl_peer peer)
{
    engine *self = context;
    pl_endpoint_drop(self->opts.listen, peer);
}

static void tell_lost(void *context, int32_t worker)
{
    engine *self = context;
    if (self->opts.lost != NULL)
        self->opts.lost(self->opts.context, worker);
}

static const pl_ring_core_ops core_ops = {
    .send = send_out,
    .follow = follow,
    .offer = make_offer,
    .accept = accept_offer,
    .complete = complete_offer,
    .drop = drop_peer,
    .lost = tell_lost,
};

/* --- driving ---------------------------------------------------------- */

/* Handle the messages of one endpoint; true when there were any. */
static bool drain(engine *self, pl_endpoint *endpoint, int32_t from)
{
    pl_message message;
    bool some = false;
    while (endpoint != NULL) {
        pl_status status = pl_endpoint_poll(endpoint, &message);
        if (status != PL_OK) {
            if (status != PL_AGAIN && self->failed.status == PL_OK)
                pl_error_save(&self->failed, status);
            break;
        }
        some = true;
        pl_ring_core_receive(self->core, from == 0 ? message.from : from,
                             &message, now_ns());
    }
    return some;
}

static bool take_messages(engine *self)
{
    bool some = drain(self, self->opts.listen, 0);
    some = drain(self, self->hub, PL_RING_HUB) || some;
    return drain(self, self->next, PL_RING_NEXT) || some;
}

static void sleep_until(engine *self, int64_t until_ns)
{
    pl_endpoint *all[3] = { self->opts.listen };
    int used = 1;
    if (self->hub != NULL)
        all[used++] = self->hub;
    if (self->next != NULL)
        all[used++] = self->next;
    pl_endpoint_wait_or(all, used, self->wake,
                        (pl_deadline) { pl_clock_real(), until_ns });
    uint64_t woken;
    (void)!read(self->wake, &woken, sizeof woken);
}

/* Handle messages and the clock; sleep until `until_ns` when there are none.
 * Over TCP sleep without spinning: another thread receives the messages and
 * needs the CPU core. */
static void turn(engine *self, int64_t until_ns)
{
    bool some = take_messages(self);
    int64_t now = now_ns();
    if (now >= self->next_tick_ns) {
        self->next_tick_ns = now + TICK_NS;
        pl_ring_core_tick(self->core, now);
    }
    int64_t end = now + (self->shared ? SPIN_NS : 0);
    for (; !some && until_ns > end && now < end; now = now_ns())
        some = take_messages(self);
    if (!some && until_ns > now)
        sleep_until(self, until_ns < self->next_tick_ns ? until_ns
                                                        : self->next_tick_ns);
}

static void take_over(engine *self)
{
    uint64_t one = 1;
    pl_mutex_lock(&self->lock);
    self->wanted = true;
    if (self->driver == OWN)
        (void)!write(self->wake, &one, sizeof one);
    while (self->driver == OWN)
        (void)!pl_cond_wait_until(&self->changed, &self->lock,
                                  pl_deadline_in_ms(pl_clock_real(), 1000));
    self->wanted = false;
    self->driver = CALLER;
    pl_mutex_unlock(&self->lock);
}

static void let_go(engine *self, bool flight)
{
    pl_mutex_lock(&self->lock);
    self->driver = NOBODY;
    self->flight = flight;
    if (flight)
        pl_cond_broadcast(&self->changed);
    pl_mutex_unlock(&self->lock);
}

/* The engine's own thread. */
static pl_status drive(void *arg)
{
    engine *self = arg;
    pl_mutex_lock(&self->lock);
    while (!self->stopping) {
        bool mine = self->driver == NOBODY && !self->wanted;
        bool flight = self->flight;
        if (mine) {
            self->driver = OWN;
            pl_mutex_unlock(&self->lock);
            turn(self, flight ? now_ns() + TICK_NS : 0);
            flight = flight && !pl_ring_core_is_quiet(self->core);
            pl_mutex_lock(&self->lock);
            self->driver = NOBODY;
            self->flight = self->flight && flight;
            pl_cond_broadcast(&self->changed);
        }
        if (!self->stopping && !(mine && flight && !self->wanted))
            (void)!pl_cond_wait_until(
                &self->changed, &self->lock,
                pl_deadline_in_ms(pl_clock_real(), TICK_NS / 1000000));
    }
    pl_mutex_unlock(&self->lock);
    return PL_OK;
}

static pl_status outcome(const engine *self)
{
    if (self->failed.status != PL_OK)
        return pl_error_raise(&self->failed);
    return pl_ring_core_outcome(self->core);
}

typedef bool ready_test(const engine *self, int32_t ticket);

/* Drive until the test succeeds; the caller has taken over. */
static pl_status drive_until(engine *self, ready_test *test, int32_t ticket,
                             pl_deadline deadline)
{
    pl_status status = outcome(self);
    pl_ring_core_waiting(self->core, true);
    while (status == PL_OK && !test(self, ticket)) {
        if (pl_deadline_passed(deadline)) {
            status = PL_FAIL(PL_TIMEOUT,
                             "%s: the others have not reached "
                             "this step",
                             self->name);
            break;
        }
        turn(self, deadline.at_ns);
        status = outcome(self);
    }
    pl_ring_core_waiting(self->core, false);
    return status;
}

/* --- the table -------------------------------------------------------- */

/* Every few seconds log which worker is missing. */
static void say_waiting(const engine *self, int64_t begin_ns, int64_t *said_ns)
{
    int32_t absent = pl_ring_core_absent(self->core);
    int64_t now = now_ns();
    if (absent < 0 || now - *said_ns < SAY_NS)
        return;
    *said_ns = now;
    pl_log(PL_LOG_INFO, "%s waits for worker %d at %s (%lld s)", self->name,
           absent, self->opts.cluster->worker_address[absent],
           (long long)((now - begin_ns) / 1000000000));
}

static bool interrupted(const engine *self)
{
    return self->opts.interrupt != NULL &&
           atomic_load_explicit(self->opts.interrupt, memory_order_relaxed);
}

static pl_status rendezvous(engine *self)
{
    int64_t begin = now_ns(), said = begin;
    pl_ring_core_join(self->core, begin);
    while (!pl_ring_core_formed(self->core)) {
        PL_TRY(outcome(self));
        if (interrupted(self))
            return PL_FAIL(PL_INTERRUPTED, "interrupted while joining");
        turn(self, now_ns() + TICK_NS);
        say_waiting(self, begin, &said);
    }
    return PL_OK;
}

static pl_status join(pl_collective *c, pl_ranks *out)
{
    engine *self = (engine *)c;
    take_over(self);
    pl_status status = rendezvous(self);
    *out = pl_ring_core_ranks(self->core);
    self->shared = self->next != NULL && pl_endpoint_shared(self->next, 0);
    if (status == PL_OK && self->next != NULL)
        status = pl_endpoint_check(self->next, 0, "the next worker");
    let_go(self, false);
    return status;
}

static float *memory(pl_collective *c)
{
    return pl_area_data(((engine *)c)->area);
}

static pl_status start(pl_collective *c, const pl_sum_range *range,
                       int32_t *ticket)
{
    engine *self = (engine *)c;
    take_over(self);
    pl_status status = outcome(self);
    if (status == PL_OK)
        *ticket = pl_ring_core_start(self->core, range);
    let_go(self, range->more && status == PL_OK);
    return status;
}

static bool is_summed(const engine *self, int32_t ticket)
{
    return pl_ring_core_summed(self->core, ticket);
}

static pl_status wait_sum(pl_collective *c, int32_t ticket,
                          pl_deadline deadline)
{
    engine *self = (engine *)c;
    take_over(self);
    pl_status status = drive_until(self, is_summed, ticket, deadline);
    let_go(self, false);
    return status;
}

static bool is_quiet(const engine *self, int32_t ticket)
{
    (void)ticket;
    return pl_ring_core_is_quiet(self->core);
}

static pl_status quiet(pl_collective *c, pl_deadline deadline)
{
    engine *self = (engine *)c;
    take_over(self);
    pl_status status = drive_until(self, is_quiet, 0, deadline);
    if (status == PL_OK)
        pl_ring_core_quiet(self->core);
    let_go(self, false);
    return status;
}

static void background(pl_collective *c)
{
    engine *self = (engine *)c;
    take_over(self);
    let_go(self, !pl_ring_core_is_quiet(self->core));
}

static float *slot(pl_collective *c, int i)
{
    engine *self = (engine *)c;
    take_over(self);
    float *block = pl_ring_core_slot(self->core, i);
    let_go(self, false);
    return block;
}

static void keep(pl_collective *c)
{
    engine *self = (engine *)c;
    take_over(self);
    pl_ring_core_keep(self->core);
    let_go(self, false);
}

static pl_status offer(pl_collective *c, const void *status, size_t bytes,
                       pl_combine *combine)
{
    engine *self = (engine *)c;
    take_over(self);
    pl_status outcome_now = outcome(self);
    if (outcome_now == PL_OK)
        pl_ring_core_offer(self->core, status, bytes, combine);
    let_go(self, false);
    return outcome_now;
}

static bool is_exchanged(const engine *self, int32_t ticket)
{
    (void)ticket;
    return pl_ring_core_exchanged(self->core);
}

static pl_status exchange(pl_collective *c, void *out, pl_deadline deadline)
{
    engine *self = (engine *)c;
    take_over(self);
    pl_status status = drive_until(self, is_exchanged, 0, deadline);
    if (status == PL_OK)
        pl_ring_core_exchange(self->core, out);
    let_go(self, false);
    return status;
}

static void progress(pl_collective *c)
{
    pl_ring_core_progress(((engine *)c)->core);
}

static void stepped(pl_collective *c)
{
    pl_ring_core_step(((engine *)c)->core);
}

static void abort_job(pl_collective *c, const char *why)
{
    engine *self = (engine *)c;
    pl_error before;
    pl_error_save(&before, PL_CLOSED);
    take_over(self);
    pl_ring_core_abort(self->core, why);
    let_go(self, false);
    (void)pl_error_raise(&before);
}

static pl_collective_view look(pl_collective *c)
{
    engine *self = (engine *)c;
    take_over(self);
    pl_endpoint_counts all = self->closed;
    count(&all, self->opts.listen);
    count(&all, self->hub);
    count(&all, self->next);
    pl_collective_view view = {
        .sent_bytes = all.sent_bytes,
        .received_bytes = all.received_bytes,
        .sent_messages = all.sent_messages,
        .received_messages = all.received_messages,
        .restarts = pl_ring_core_restarts(self->core),
        .shared = self->next != NULL && pl_endpoint_shared(self->next, 0),
        .skew = pl_ring_core_skew(self->core),
        .coding_seconds = pl_ring_core_coding_seconds(self->core),
        .busy_ns = self->next != NULL ? pl_endpoint_busy_ns(self->next) : -1,
    };
    let_go(self, false);
    return view;
}

static void engine_free(pl_collective *c)
{
    engine *self = (engine *)c;
    uint64_t one = 1;
    pl_mutex_lock(&self->lock);
    self->stopping = true;
    pl_cond_broadcast(&self->changed);
    pl_mutex_unlock(&self->lock);
    if (self->wake >= 0)
        (void)!write(self->wake, &one, sizeof one);
    (void)!pl_thread_join(self->thread);
    pl_endpoint_free(self->hub, LINGER_MS);
    pl_endpoint_free(self->next, LINGER_MS);
    pl_ring_core_free(self->core);
    pl_area_free(self->area);
    if (self->wake >= 0)
        close(self->wake);
    pl_cond_close(&self->changed);
    pl_mutex_close(&self->lock);
    pl_mem_free(self);
}

static const pl_collective_ops ops = {
    .name = "ring",
    .ordered = true,
    .join = join,
    .memory = memory,
    .start = start,
    .wait = wait_sum,
    .quiet = quiet,
    .background = background,
    .slot = slot,
    .keep = keep,
    .offer = offer,
    .exchange = exchange,
    .progress = progress,
    .stepped = stepped,
    .abort = abort_job,
    .look = look,
    .free = engine_free,
};

/* After the memory of the sums, so that it is shared as well. */
static float *encoded(const engine *self)
{
    if (self->opts.codec->in_place)
        return NULL;
    return (float *)pl_area_data(self->area) + self->opts.floats +
           self->opts.extra;
}

static pl_status open_area(engine *self)
{
    size_t floats = (size_t)(self->opts.floats + self->opts.extra);
    if (!self->opts.codec->in_place)
        floats += (size_t)self->opts.floats;
    return pl_area_new(&self->area, floats * sizeof(float));
}

static pl_status open_core(engine *self)
{
    const pl_ring_engine_opts *opts = &self->opts;
    return pl_ring_core_new(&self->core,
                            &(pl_ring_core_opts) {
                                .worker = opts->worker,
                                .workers = opts->cluster->workers,
                                .address = opts->cluster->worker_address,
                                .floats = opts->floats,
                                .extra = opts->extra,
                                .memory = pl_area_data(self->area),
                                .codec = opts->codec,
                                .encoded = encoded(self),
                                .incarnation = pl_incarnation_draw(),
                                .on_loss = opts->on_loss,
                                .heartbeat_ms = opts->heartbeat_ms,
                                .join_ms = opts->join_ms,
                                .rejoin_ms = opts->rejoin_ms,
                                .kernels = opts->kernels,
                                .ops = &core_ops,
                                .context = self,
                            });
}

int64_t pl_ring_engine_grain(int64_t floats)
{
    return pl_ring_stripe(floats, 2);
}

pl_status pl_ring_engine_new(pl_collective **out,
                             const pl_ring_engine_opts *opts)
{
    engine *self;
    PL_ASSERT(opts->cluster->worker_address != NULL && opts->listen != NULL);
    PL_TRY(PL_NEW(self, 1));
    self->base.ops = &ops;
    self->opts = *opts;
    if (opts->codec == NULL)
        self->opts.codec = pl_codecs[0];
    self->wake = -1;
    snprintf(self->name, sizeof self->name, "worker %d", opts->worker);
    pl_mutex_init(&self->lock);
    pl_cond_init(&self->changed);
    pl_status status;
    PL_TRY_OUT(status, open_area(self));
    PL_TRY_OUT(status, open_core(self));
    if (opts->worker != 0)
        PL_TRY_OUT(status, connect_to(self, 0, NULL, &self->hub));
    self->wake = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (self->wake < 0) {
        status = PL_FAIL(PL_IO, "no event descriptor: %s", strerror(errno));
        goto out;
    }
    PL_TRY_OUT(status, pl_thread_start(&self->thread, "ring", drive, self));
    *out = &self->base;
    return PL_OK;
out:
    engine_free(&self->base);
    return status;
}
