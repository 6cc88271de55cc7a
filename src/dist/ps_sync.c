#include "dist/ps_sync_priv.h"

#include "base/assert.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/mem.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define LINGER_MS 1000 /* for the last message to leave */
#define SAY_NS    INT64_C(5000000000)
/* Of messages about sparse parameters, to all servers together. */
#define MESSAGE_BYTES ((size_t)16 << 20)

static int64_t now_ns(void)
{
    return pl_clock_now_ns(pl_clock_real());
}

static void send_out(void *context, int32_t ps, const pl_frame *frame,
                     const void *payload, bool lasting)
{
    pl_ps_sync *self = context;
    if (pl_endpoint_send(self->ends[ps], 0, frame, payload, lasting) != PL_OK)
        pl_log(PL_LOG_WARN, "%s: %s", self->name, pl_error_message());
}

static void make_offer(void *context, int32_t ps, char offer[PL_OFFER_BYTES])
{
    pl_ps_sync *self = context;
    if (pl_endpoint_offer(self->ends[ps], offer) != PL_OK)
        pl_log(PL_LOG_WARN, "%s: %s", self->name, pl_error_message());
}

static void take_answer(void *context, int32_t ps, const char *answer)
{
    pl_ps_sync *self = context;
    if (pl_endpoint_complete(self->ends[ps], answer) != PL_OK)
        pl_log(PL_LOG_WARN, "%s: %s", self->name, pl_error_message());
}

static const pl_ps_client_ops client_ops = {
    .send = send_out,
    .offer = make_offer,
    .shared = take_answer,
};

/* Handle all that is there; *some: there was something. */
static pl_status take_messages(pl_ps_sync *self, bool *some)
{
    pl_message message;
    *some = false;
    for (int32_t j = 0; j < self->ps; j++)
        for (;;) {
            pl_status status = pl_endpoint_poll(self->ends[j], &message);
            if (status == PL_AGAIN)
                break;
            PL_TRY(status);
            *some = true;
            pl_ps_client_receive(self->client, j, &message, now_ns());
        }
    return PL_OK;
}

/* Messages, the clock, the heart: one turn of every wait. */
static pl_status turn(pl_ps_sync *self)
{
    bool some;
    PL_TRY(take_messages(self, &some));
    if (pl_ps_client_rolled(self->client))
        return PL_FAIL(PL_ROLLED, "a server was lost: the job begins anew "
                                  "from its last checkpoint");
    if (some)
        return pl_ps_client_outcome(self->client);
    int64_t now = now_ns();
    if (now >= self->next_tick_ns) {
        self->next_tick_ns = now + PL_TICK_MS * INT64_C(1000000);
        pl_ps_client_tick(self->client, now);
        PL_TRY(pl_ps_client_outcome(self->client));
        PL_TRY(pl_heart_check(self->heart));
    }
    pl_endpoint_wait(self->ends, self->ps,
                     (pl_deadline) { pl_clock_real(), self->next_tick_ns });
    return PL_OK;
}

pl_status pl_ps_sync_finish(pl_ps_sync *self)
{
    while (pl_ps_client_busy(self->client))
        PL_TRY(turn(self));
    return pl_ps_client_outcome(self->client);
}

static int64_t heartbeat_ms(const pl_ps_sync *self)
{
    return self->opts.heartbeat_ms > 0 ? self->opts.heartbeat_ms : 5000;
}

/* How long a server may take to answer. */
static int64_t join_limit_ms(const pl_ps_sync *self)
{
    if (self->joined)
        return self->opts.rejoin_ms > 0 ? self->opts.rejoin_ms : 60000;
    return self->opts.join_ms > 0 ? self->opts.join_ms : 600000;
}

/* Tell for whom we wait, every few seconds, until the deadline. */
static pl_status wait_to_join(pl_ps_sync *self)
{
    int64_t begin = now_ns(), said = begin;
    int64_t limit = join_limit_ms(self);
    while (pl_ps_client_busy(self->client)) {
        PL_TRY(turn(self));
        int64_t now = now_ns();
        int32_t ps = pl_ps_client_absent(self->client);
        if (self->opts.interrupt != NULL &&
            atomic_load_explicit(self->opts.interrupt, memory_order_relaxed))
            return PL_FAIL(PL_INTERRUPTED, "interrupted while joining");
        if (ps < 0)
            continue;
        const char *address = self->opts.cluster->ps_address[ps];
        if (now - begin > limit * 1000000)
            return PL_FAIL(PL_TIMEOUT,
                           "%s: ps %d at %s did not answer within %lld s "
                           "(--%sjoin-timeout): is it running, and is that its "
                           "address?",
                           self->name, ps, address, (long long)limit / 1000,
                           self->joined ? "re" : "");
        if (now - said > SAY_NS) {
            said = now;
            pl_log(PL_LOG_INFO, "%s waits for ps %d at %s (%lld s)", self->name,
                   ps, address, (long long)((now - begin) / 1000000000));
        }
    }
    return pl_ps_client_outcome(self->client);
}

static pl_status check_transport(const pl_ps_sync *self)
{
    for (int32_t j = 0; j < self->ps; j++)
        if (self->opts.transport == PL_TRANSPORT_SHM &&
            !pl_endpoint_shared(self->ends[j], 0))
            return PL_FAIL(PL_USAGE,
                           "--transport shm: no memory can be shared with ps "
                           "%d at %s; is it on this host, of the same user?",
                           j, self->opts.cluster->ps_address[j]);
    return PL_OK;
}

/* Who this task proves to be. */
static pl_principal principal(const pl_ps_sync *self)
{
    if (self->opts.task.role == PL_ROLE_EVALUATOR)
        return (pl_principal) { PL_PRINCIPAL_EVALUATOR, 0 };
    return (pl_principal) { PL_PRINCIPAL_WORKER,
                            pl_cluster_worker(self->opts.cluster,
                                              self->opts.task) };
}

static pl_status connect_all(pl_ps_sync *self)
{
    pl_heart_stop(self->heart);
    self->heart = NULL;
    self->pushing = self->over = self->broken = false;
    pl_ps_client_join(self->client);
    PL_TRY(wait_to_join(self));
    PL_TRY(check_transport(self));
    if (self->opts.joined != NULL)
        self->opts.joined(self->opts.context);
    pl_ps_client_view view = pl_ps_client_look(self->client);
    self->joined = true;
    return pl_heart_start(&self->heart,
                          &(pl_heart_opts) {
                              .address = self->opts.cluster->ps_address[0],
                              .name = self->name,
                              .incarnation = view.incarnation,
                              .generation = view.generation,
                              .keys = self->opts.keys,
                              .self = principal(self),
                              .timeout_ms = heartbeat_ms(self),
                          });
}

/* Ask for parameters: all, where they are dense, else how things stand. */
static pl_status pull(pl_ps_sync *self, unsigned flags, int64_t step)
{
    if (self->keys != NULL) {
        pl_sync_keys_note(self);
        pl_ps_client_ask(self->client, flags, step, NULL);
    } else {
        pl_ps_client_pull(self->client, flags, step);
    }
    PL_TRY(pl_ps_sync_finish(self));
    pl_ps_sync_hear_end(self);
    return PL_OK;
}

/* Who was done when server 0 fell silent may go when nobody is there. */
static pl_status connect_or_go(pl_ps_sync *self)
{
    pl_status status = connect_all(self);
    self->gone = self->leaving && status != PL_OK;
    if (self->gone)
        pl_log(PL_LOG_INFO, "%s: all is done, and server 0 is gone",
               self->name);
    self->leaving = false;
    return self->gone ? PL_OK : status;
}

void pl_ps_sync_hear_end(pl_ps_sync *self)
{
    unsigned answer = pl_ps_client_look(self->client).answer;
    self->over = self->over || (answer & PL_ANSWER_STOP) != 0;
    self->broken = self->broken || (answer & PL_ANSWER_BROKEN) != 0;
}

/* After the first parameters came: who joined before the chief was not told
 * where the run folder is, and joins once more to hear it; *again: then what
 * was asked for before must be asked for again. */
static pl_status locate(pl_ps_sync *self, bool *again)
{
    *again = false;
    if (self->opts.located == NULL || self->located)
        return PL_OK;
    if (pl_ps_client_look(self->client).run == NULL) {
        pl_ps_client_join(self->client);
        PL_TRY(wait_to_join(self));
        *again = true;
    }
    pl_ps_client_view view = pl_ps_client_look(self->client);
    if (view.run != NULL)
        self->opts.located(self->opts.context, view.job, view.run);
    self->located = view.run != NULL;
    return PL_OK;
}

static pl_status join(pl_sync *sync, pl_standing *at)
{
    pl_ps_sync *self = (pl_ps_sync *)sync;
    PL_TRY(connect_or_go(self));
    if (self->gone) {
        at->own = self->own;
        at->over = self->over = true;
        return PL_OK;
    }
    if (self->chief)
        PL_TRY(pl_ps_sync_restore(self, &at->start));
    pl_heart_tell(self->heart, at->step, PL_PHASE_WAITING);
    if (self->keys != NULL)
        pl_sync_keys_reset(self->keys);
    bool again;
    PL_TRY(pull(self, 0, 0));
    self->pulled = true;
    PL_TRY(locate(self, &again));
    if (again && self->keys != NULL)
        pl_sync_keys_reset(self->keys);
    if (again)
        PL_TRY(pull(self, 0, 0));
    pl_ps_client_view view = pl_ps_client_look(self->client);
    *at = (pl_standing) { .step = view.step, .own = view.own };
    return PL_OK;
}

static pl_status need(pl_sync *sync, int param, const pl_keys *keys)
{
    pl_ps_sync *self = (pl_ps_sync *)sync;
    PL_ASSERT(keys == NULL);
    const pl_params_item *item = pl_params_get(self->opts.params, param);
    int64_t first = item->offset, count = item->count;
    /* Where the job does not wait for this worker, the parameters can move on
     * while they are sent: none is read before all are of one step. */
    if (self->opts.mode == PL_PS_SYNC && self->opts.backup) {
        first = 0;
        count = pl_params_block_count(self->opts.params);
    }
    if (pl_ps_client_have(self->client, first, count))
        return PL_OK;
    /* A server may be lost: no progress is made, and that is no fault. */
    int64_t step = pl_ps_client_look(self->client).step;
    pl_heart_tell(self->heart, step, PL_PHASE_WAITING);
    while (!pl_ps_client_have(self->client, first, count))
        PL_TRY(turn(self));
    pl_heart_tell(self->heart, step, PL_PHASE_COMPUTING);
    return PL_OK;
}

/* Begin the push of this step when its first gradient is ready. */
static void begin_push(pl_ps_sync *self)
{
    pl_ps_client_view view = pl_ps_client_look(self->client);
    self->pushing = true;
    self->ready = pl_params_block_count(self->opts.params);
    pl_heart_tell(self->heart, view.step, PL_PHASE_COMPUTING);
    pl_ps_client_push(self->client, view.step, pl_area_data(self->area));
}

static pl_status ready(pl_sync *sync, int param, const float *grad,
                       const pl_keys *keys)
{
    pl_ps_sync *self = (pl_ps_sync *)sync;
    const pl_params_item *item = pl_params_get(self->opts.params, param);
    PL_ASSERT(keys == NULL &&
              grad == (float *)pl_area_data(self->area) + item->offset);
    if (!self->pushing)
        begin_push(self);
    /* Parameters become ready from the last to the first. */
    if (item->offset < self->ready)
        self->ready = item->offset;
    /* Small models go in one piece, at the end. */
    bool windowed = pl_ps_client_windowed(self->client);
    if (windowed || self->ready == 0)
        pl_ps_client_ready(self->client, self->ready);
    bool some;
    return windowed ? take_messages(self, &some) : PL_OK;
}

static pl_status commit(pl_sync *sync, pl_commit *out)
{
    pl_ps_sync *self = (pl_ps_sync *)sync;
    PL_ASSERT(self->pushing && self->ready == 0);
    pl_heart_tell(self->heart, pl_ps_client_look(self->client).step,
                  PL_PHASE_WAITING);
    while (!pl_ps_client_answered(self->client))
        PL_TRY(turn(self));
    self->pushing = false;
    pl_ps_client_view view = pl_ps_client_look(self->client);
    *out = (pl_commit) {
        .step = view.step,
        .dropped = (view.answer & PL_ANSWER_DROPPED) != 0,
        .stop = (view.answer & PL_ANSWER_STOP) != 0,
    };
    pl_ps_sync_hear_end(self);
    self->dropped += out->dropped;
    if (out->stop)
        PL_TRY(pl_ps_sync_finish(self));
    pl_heart_tell(self->heart, view.step, PL_PHASE_COMPUTING);
    return PL_OK;
}

static float *gradient(pl_sync *sync)
{
    return pl_area_data(((pl_ps_sync *)sync)->area);
}

/* In lock step with all workers nothing moves while the chief evaluates.
 * Otherwise the others are told, and the newest parameters fetched. */
static pl_status pause_job(pl_sync *sync, int64_t *step)
{
    pl_ps_sync *self = (pl_ps_sync *)sync;
    pl_heart_tell(self->heart, *step, PL_PHASE_EVALUATING);
    PL_TRY(pl_ps_sync_finish(self));
    if (self->over || (self->opts.mode == PL_PS_SYNC && !self->opts.backup) ||
        self->opts.mode == PL_PS_ASYNC)
        return PL_OK;
    pl_ps_client_pause(self->client);
    PL_TRY(pl_ps_sync_finish(self));
    PL_TRY(pull(self, 0, 0));
    *step = pl_ps_client_look(self->client).step;
    return PL_OK;
}

static void testing(pl_sync *sync, int64_t step, bool begins)
{
    pl_heart_tell(((pl_ps_sync *)sync)->heart, step,
                  begins ? PL_PHASE_EVALUATING : PL_PHASE_COMPUTING);
}

static bool is_loose(const pl_sync *sync)
{
    return ((const pl_ps_sync *)sync)->opts.mode != PL_PS_SYNC;
}

static pl_status stop(pl_sync *sync, const char *why)
{
    pl_ps_sync *self = (pl_ps_sync *)sync;
    if (self->gone)
        return PL_OK;
    pl_heart_tell(self->heart, pl_ps_client_look(self->client).step,
                  PL_PHASE_WAITING);
    PL_TRY(pl_ps_sync_finish(self));
    self->over = true;
    pl_ps_client_stop(self->client, false, why);
    return pl_ps_sync_finish(self);
}

static pl_status share(pl_sync *sync, int64_t own, bool wait, pl_share *out)
{
    pl_ps_sync *self = (pl_ps_sync *)sync;
    *out = (pl_share) { .worker = principal(self).index, .own = own };
    if (self->gone)
        return PL_OK;
    pl_heart_tell(self->heart, pl_ps_client_look(self->client).step,
                  PL_PHASE_WAITING);
    PL_TRY(pl_ps_sync_finish(self));
    if (self->keys != NULL)
        pl_sync_keys_settle(self);
    pl_ps_client_share(self->client, own, wait);
    PL_TRY(pl_ps_sync_finish(self));
    pl_ps_client_view view = pl_ps_client_look(self->client);
    *out = (pl_share) { .worker = view.share, .own = view.share_own };
    pl_heart_tell(self->heart, view.step, PL_PHASE_COMPUTING);
    return PL_OK;
}

static pl_status settle(pl_sync *sync, int64_t *step)
{
    pl_ps_sync *self = (pl_ps_sync *)sync;
    if (self->gone)
        return PL_OK;
    pl_heart_tell(self->heart, *step, PL_PHASE_WAITING);
    PL_TRY(pl_ps_sync_finish(self));
    PL_TRY(pull(self, PL_PULL_FINAL, 0));
    *step = pl_ps_client_look(self->client).step;
    self->over = true;
    return PL_OK;
}

static pl_status finish(pl_sync *sync)
{
    pl_ps_sync *self = (pl_ps_sync *)sync;
    char *text = NULL;
    if (self->gone)
        return PL_OK;
    PL_TRY(pl_ps_sync_finish(self));
    if (self->opts.report != NULL)
        PL_TRY(self->opts.report(self->opts.context, &text));
    pl_ps_client_bye(self->client, text != NULL ? text : "null");
    self->own = pl_ps_client_look(self->client).own;
    pl_status status = pl_ps_sync_finish(self);
    self->leaving = status == PL_ROLLED;
    pl_mem_free(text);
    return status;
}

static void traffic(const pl_sync *sync, int64_t *sent_bytes,
                    int64_t *received_bytes)
{
    const pl_ps_sync *self = (const pl_ps_sync *)sync;
    *sent_bytes = *received_bytes = 0;
    for (int32_t j = 0; j < self->ps; j++) {
        pl_endpoint_counts counts = pl_endpoint_count(self->ends[j]);
        *sent_bytes += counts.sent_bytes;
        *received_bytes += counts.received_bytes;
    }
}

/* Tell the job, as far as it still listens, why we go. */
static void abort_job(pl_sync *sync, const char *why)
{
    pl_ps_sync *self = (pl_ps_sync *)sync;
    pl_error before;
    pl_error_save(&before, PL_CLOSED);
    if (self->heart != NULL && pl_ps_client_outcome(self->client) == PL_OK &&
        pl_heart_check(self->heart) == PL_OK) {
        char text[400];
        snprintf(text, sizeof text, "%s", why);
        pl_ps_client_abort(self->client, text);
    }
    (void)pl_error_raise(&before);
}

static void sync_free(pl_sync *sync)
{
    pl_ps_sync *self = (pl_ps_sync *)sync;
    pl_heart_stop(self->heart);
    for (int32_t j = 0; self->ends != NULL && j < self->ps; j++)
        pl_endpoint_free(self->ends[j], LINGER_MS);
    pl_mem_free(self->ends);
    pl_ps_client_free(self->client);
    pl_area_free(self->area);
    pl_sync_keys_free(self->keys);
    pl_mem_free(self);
}

static const pl_sync_ops ops = {
    .name = "ps",
    .join = join,
    .need = need,
    .ready = ready,
    .commit = commit,
    .save = pl_ps_sync_save,
    .finish = finish,
    .free = sync_free,
    .gradient = gradient,
    .pause = pause_job,
    .testing = testing,
    .loose = is_loose,
    .stop = stop,
    .share = share,
    .settle = settle,
    .traffic = traffic,
    .abort = abort_job,
};

/* Sparse parameters: nothing is read that was not asked for. */
static const pl_sync_ops keys_ops = {
    .name = "ps",
    .join = join,
    .ready = pl_sync_keys_ready,
    .commit = pl_sync_keys_commit,
    .save = pl_ps_sync_save,
    .finish = finish,
    .free = sync_free,
    .pause = pl_sync_keys_pause,
    .testing = testing,
    .loose = is_loose,
    .stop = stop,
    .share = share,
    .settle = settle,
    .abort = abort_job,
    .ahead = pl_sync_keys_ahead,
    .ask = pl_sync_keys_ask,
    .take = pl_sync_keys_take,
    .look = pl_sync_keys_look,
};

static pl_status open_client(pl_ps_sync *self)
{
    const pl_ps_sync_opts *opts = &self->opts;
    bool worker = opts->task.role != PL_ROLE_EVALUATOR;
    pl_ps_client_opts client = {
        .role = worker ? "worker" : "evaluator",
        .index = worker ? pl_cluster_worker(opts->cluster, opts->task) : 0,
        .ps = self->ps,
        .workers = opts->cluster->workers,
        .mode = opts->mode,
        .count = pl_params_block_count(opts->params),
        .end_step = opts->end_step,
        .run_steps = opts->run_steps,
        .settings = opts->settings,
        .job = opts->job,
        .run = opts->run,
        .host = self->host,
        .process = getpid(),
        .started_ms = pl_clock_boot_ns() / 1000000,
        .ops = &client_ops,
        .context = self,
    };
    pl_clock_boot_id(client.boot);
    if (opts->sparse != NULL) {
        const pl_params_item *table =
            pl_params_get(opts->params, opts->sparse->table);
        client.table_first = table->offset;
        client.table_count = table->count;
        client.messages = pl_area_data(self->area);
        client.message_bytes = MESSAGE_BYTES;
    } else {
        client.params = pl_params_block(opts->params);
    }
    return pl_ps_client_new(&self->client, &client, now_ns());
}

static pl_status open_ends(pl_ps_sync *self)
{
    const pl_ps_sync_opts *opts = &self->opts;
    PL_TRY(PL_NEW(self->ends, (size_t)self->ps));
    for (int32_t j = 0; j < self->ps; j++)
        PL_TRY(pl_endpoint_connect(
            &self->ends[j], &(pl_endpoint_opts) {
                                .address = opts->cluster->ps_address[j],
                                .name = self->name,
                                .area = self->area,
                                .no_shm = opts->transport == PL_TRANSPORT_TCP,
                                .keys = opts->keys,
                                .self = principal(self),
                                .server = j,
                            }));
    return PL_OK;
}

pl_status pl_ps_sync_new(pl_ps_sync **out, const pl_ps_sync_opts *opts)
{
    pl_ps_sync *self;
    PL_ASSERT(opts->cluster->ps >= 1);
    PL_TRY(PL_NEW(self, 1));
    self->base.ops = &ops;
    self->opts = *opts;
    self->ps = opts->cluster->ps;
    self->chief = pl_cluster_is_chief(opts->cluster, opts->task);
    gethostname(self->host, sizeof self->host - 1);
    snprintf(self->name, sizeof self->name, "%s %d",
             pl_role_text(opts->task.role), opts->task.index);
    size_t floats = (size_t)pl_params_block_count(opts->params);
    pl_status status;
    if (opts->sparse != NULL) {
        self->base.ops = &keys_ops;
        PL_TRY_OUT(status, pl_sync_keys_new(&self->keys, self->ps));
        PL_TRY_OUT(status, pl_area_new(&self->area, MESSAGE_BYTES));
    } else if (opts->task.role != PL_ROLE_EVALUATOR) {
        PL_TRY_OUT(status, pl_area_new(&self->area, floats * sizeof(float)));
    }
    PL_TRY_OUT(status, open_ends(self));
    PL_TRY_OUT(status, open_client(self));
    *out = self;
    return PL_OK;
out:
    sync_free(&self->base);
    return status;
}

pl_sync *pl_ps_sync_base(pl_ps_sync *sync)
{
    return &sync->base;
}

pl_ps_sync_view pl_ps_sync_look(const pl_ps_sync *sync)
{
    pl_ps_client_view client = pl_ps_client_look(sync->client);
    pl_ps_sync_view view = {
        .step = client.step,
        .made = client.made,
        .dropped = client.report != NULL ? client.dropped : sync->dropped,
        .update_seconds = (double)client.update_ns * 1e-9,
        .reports = client.report,
        .skew = pl_heart_skew(sync->heart),
        .shared = pl_endpoint_shared(sync->ends[0], 0),
        .over = sync->over,
        .broken = sync->broken,
    };
    traffic(&sync->base, &view.sent_bytes, &view.received_bytes);
    return view;
}

static pl_status pull_once(pl_ps_sync *sync, int64_t step)
{
    if (sync->heart == NULL)
        PL_TRY(connect_all(sync));
    bool again;
    pl_heart_tell(sync->heart, step, PL_PHASE_WAITING);
    PL_TRY(pull(sync, 0, step));
    PL_TRY(locate(sync, &again));
    if (again)
        PL_TRY(pull(sync, 0, step));
    pl_heart_tell(sync->heart, step, PL_PHASE_EVALUATING);
    return PL_OK;
}

pl_status pl_ps_sync_pull(pl_ps_sync *sync, int64_t step)
{
    for (;;) {
        pl_status status = pull_once(sync, step);
        if (status != PL_ROLLED)
            return status;
        pl_log(PL_LOG_WARN, "%s", pl_error_message());
        PL_TRY(connect_all(sync));
    }
}

pl_status pl_ps_sync_leave(pl_ps_sync *sync)
{
    pl_status status = finish(&sync->base);
    if (status != PL_ROLLED)
        return status;
    pl_log(PL_LOG_INFO, "%s: all is done, and server 0 is gone", sync->name);
    return PL_OK;
}
