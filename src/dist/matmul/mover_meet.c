/* Meeting the other workers.
 *
 *   worker to worker   join {worker, job, shm}  ->  welcome {shm} | refuse why
 *   worker to 0        heart (phase, worker)    ->  beat (phase of the job,
 *                                                   why it failed)
 *                      bye {report}             ->  ack
 *
 * All are sent again until they are answered. */
#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "dist/matmul/mover_priv.h"

#include <stdio.h>
#include <string.h>

#define AGAIN_NS   ((int64_t)100 * 1000 * 1000) /* between two hearts */
#define TEXT_BYTES 1024

static int64_t now_ns(void)
{
    return pl_clock_now_ns(pl_clock_real());
}

static pl_status send_text(const pl_mover *m, pl_endpoint *end, pl_peer to,
                           pl_frame frame, const char *text)
{
    frame.payload_bytes = (uint32_t)strlen(text);
    return m->net->send(end, to, &frame, text, false);
}

/* The payload as text, cut where it is longer. */
static void take_text(const pl_message *message, char *text, size_t room)
{
    size_t bytes = message->frame.payload_bytes;
    bytes = bytes < room - 1 ? bytes : room - 1;
    if (bytes > 0) /* else there is no payload */
        memcpy(text, message->payload, bytes);
    text[bytes] = '\0';
}

/* --- joining ---------------------------------------------------------- */

static pl_status fill_join(const pl_mover *m, pl_json *join, const char *offer)
{
    PL_TRY(pl_json_set_int(join, "worker", m->opts.worker));
    PL_TRY(pl_json_set_text(join, "job", m->opts.job));
    return pl_json_set_text(join, "shm", offer);
}

static pl_status send_join(pl_mover *m, pl_colleague *other)
{
    char offer[PL_OFFER_BYTES] = "";
    pl_json *join;
    char *text = NULL;
    if (!m->opts.no_shm)
        PL_TRY(m->net->offer(other->end, offer));
    PL_TRY(pl_json_new_object(&join));
    pl_status status = fill_join(m, join, offer);
    if (status == PL_OK)
        status = pl_json_text(join, 0, &text);
    if (status == PL_OK)
        status = send_text(m, other->end, 0,
                           (pl_frame) { .kind = PL_FRAME_JOIN }, text);
    pl_json_free(join);
    pl_mem_free(text);
    return status;
}

/* Why who asks cannot be let in; NULL: it can. */
static const char *look_at_join(const pl_mover *m, const pl_message *message,
                                const pl_json *join, const char **offer)
{
    int64_t worker;
    const char *job;
    if (pl_json_get_int(join, "worker", 0, m->opts.placement->job.workers - 1,
                        &worker) != PL_OK ||
        pl_json_get_text(join, "job", &job) != PL_OK ||
        pl_json_get_text(join, "shm", offer) != PL_OK)
        return "not understood";
    if (message->who.role != PL_PRINCIPAL_NONE &&
        (message->who.role != PL_PRINCIPAL_WORKER ||
         message->who.index != worker))
        return "its keys are another worker's";
    return strcmp(job, m->opts.job) == 0 ? NULL : m->opts.job;
}

static pl_status refuse(pl_mover *m, pl_peer to, const char *job)
{
    char text[TEXT_BYTES];
    snprintf(text, sizeof text, "worker %d was started for another job: %s",
             m->opts.worker, job);
    return send_text(m, m->server, to, (pl_frame) { .kind = PL_FRAME_REFUSE },
                     text);
}

static pl_status take_join(pl_mover *m, const pl_message *message)
{
    pl_json *join;
    const char *offer, *why;
    char answer[PL_OFFER_BYTES] = "";
    if (pl_json_parse(&join, message->payload, message->frame.payload_bytes,
                      "join") != PL_OK)
        return PL_OK; /* not one of ours */
    why = look_at_join(m, message, join, &offer);
    pl_status status = PL_OK;
    if (why == NULL && offer[0] != '\0' && !m->opts.no_shm)
        status = m->net->accept(m->server, message->from, offer, answer);
    if (status == PL_OK)
        status =
            why != NULL
                ? refuse(m, message->from, why)
                : send_text(m, m->server, message->from,
                            (pl_frame) { .kind = PL_FRAME_WELCOME }, answer);
    pl_json_free(join);
    return status;
}

static pl_status take_welcome(const pl_mover *m, pl_colleague *other,
                              const pl_message *message)
{
    char answer[PL_OFFER_BYTES];
    if (other->joined)
        return PL_OK;
    take_text(message, answer, sizeof answer);
    if (answer[0] != '\0')
        PL_TRY(m->net->complete(other->end, answer));
    other->joined = true;
    return PL_OK;
}

/* --- the hearts ------------------------------------------------------- */

/* Ready is who has its blocks and all connections. */
static pl_worker_phase own_phase(pl_mover *m)
{
    pl_mutex_lock(&m->lock);
    pl_worker_phase phase = m->phase;
    pl_mutex_unlock(&m->lock);
    for (int32_t w = 0; w < m->opts.placement->job.workers; w++)
        if (m->others[w].end != NULL && !m->others[w].joined)
            return PL_WORKER_MAKING;
    return phase;
}

/* The report is the mover's from when it was handed in. */
static const char *report_to_send(pl_mover *m)
{
    pl_mutex_lock(&m->lock);
    const char *report = m->delivered ? NULL : m->report;
    pl_mutex_unlock(&m->lock);
    return report;
}

static pl_status send_heart(pl_mover *m)
{
    pl_endpoint *end = m->others[0].end;
    pl_frame frame = { .kind = PL_FRAME_HEART,
                       .value = { own_phase(m), m->opts.worker } };
    const char *report = report_to_send(m);
    PL_TRY(m->net->send(end, 0, &frame, NULL, false));
    frame.kind = PL_FRAME_BYE;
    return report == NULL ? PL_OK : send_text(m, end, 0, frame, report);
}

/* What worker 0 tells all who ask. */
static pl_status send_beat(pl_mover *m, pl_peer to, pl_colleague *other)
{
    char why[PL_ERROR_BYTES] = "";
    pl_mutex_lock(&m->lock);
    pl_matmul_phase job = m->job;
    if (job == PL_MATMUL_FAILED)
        snprintf(why, sizeof why, "%s", m->failed.message);
    pl_mutex_unlock(&m->lock);
    other->told = job == PL_MATMUL_OVER || job == PL_MATMUL_FAILED;
    return send_text(m, m->server, to,
                     (pl_frame) { .kind = PL_FRAME_BEAT, .value = { job, 0 } },
                     why);
}

/* The colleague that a heart or a report is from; NULL: nobody of the job. */
static pl_colleague *sender(pl_mover *m, const pl_message *message)
{
    int64_t worker = message->frame.value[1];
    bool proved = message->who.role == PL_PRINCIPAL_NONE ||
                  (message->who.role == PL_PRINCIPAL_WORKER &&
                   message->who.index == worker);
    if (m->opts.worker != 0 || !proved || worker < 1 ||
        worker >= m->opts.placement->job.workers)
        return NULL;
    return &m->others[worker];
}

static pl_status take_heart(pl_mover *m, const pl_message *message)
{
    pl_colleague *other = sender(m, message);
    int64_t phase = message->frame.value[0];
    if (other == NULL || phase < PL_WORKER_MAKING || phase > PL_WORKER_DONE)
        return PL_OK;
    other->heard_ns = now_ns();
    other->phase = (pl_worker_phase)phase;
    return send_beat(m, message->from, other);
}

static pl_status take_report(pl_mover *m, const pl_message *message)
{
    pl_colleague *other = sender(m, message);
    if (other == NULL)
        return PL_OK;
    if (other->report == NULL) {
        size_t bytes = message->frame.payload_bytes;
        PL_TRY(PL_NEW(other->report, bytes + 1));
        if (bytes > 0)
            memcpy(other->report, message->payload, bytes);
    }
    return m->net->send(m->server, message->from,
                        &(pl_frame) { .kind = PL_FRAME_ACK }, NULL, false);
}

static pl_status take_beat(pl_mover *m, const pl_message *message)
{
    int64_t phase = message->frame.value[0];
    if (phase == PL_MATMUL_FAILED) {
        char why[PL_ERROR_BYTES];
        take_text(message, why, sizeof why);
        return PL_FAIL(PL_CLOSED, "worker 0 ends the job: %s", why);
    }
    pl_mutex_lock(&m->lock);
    if (phase > (int64_t)m->job && phase <= PL_MATMUL_OVER) {
        m->job = (pl_matmul_phase)phase;
        pl_cond_broadcast(&m->moved);
    }
    pl_mutex_unlock(&m->lock);
    return PL_OK;
}

static void take_ack(pl_mover *m)
{
    pl_mutex_lock(&m->lock);
    m->delivered = true;
    pl_mutex_unlock(&m->lock);
}

pl_status pl_mover_take_request(pl_mover *m, const pl_message *message)
{
    switch (message->frame.kind) {
    case PL_FRAME_JOIN:
        return take_join(m, message);
    case PL_FRAME_HEART:
        return take_heart(m, message);
    case PL_FRAME_BYE:
        return take_report(m, message);
    case PL_FRAME_PULL:
        return pl_mover_serve(m, message);
    default:
        return PL_OK;
    }
}

pl_status pl_mover_take_answer(pl_mover *m, int32_t from,
                               const pl_message *message)
{
    pl_colleague *other = &m->others[from];
    char why[TEXT_BYTES];
    other->heard_ns = now_ns();
    switch (message->frame.kind) {
    case PL_FRAME_WELCOME:
        return take_welcome(m, other, message);
    case PL_FRAME_REFUSE:
        take_text(message, why, sizeof why);
        return PL_FAIL(PL_USAGE,
                       "worker %d at %s: %s; this one for: %s; start all with "
                       "the same flags",
                       from, other->address, why, m->opts.job);
    case PL_FRAME_BEAT: /* worker 0 alone leads */
        return from == 0 ? take_beat(m, message) : PL_OK;
    case PL_FRAME_ACK:
        if (from == 0)
            take_ack(m);
        return PL_OK;
    case PL_FRAME_PARAMS:
        return pl_mover_take_piece(m, from, message);
    default:
        return PL_OK;
    }
}

/* --- what is due ------------------------------------------------------ */

/* Worker 0: have all come so far? */
static bool all_are(const pl_mover *m, pl_worker_phase phase)
{
    for (int32_t w = 1; w < m->opts.placement->job.workers; w++)
        if (m->others[w].phase < phase ||
            (phase == PL_WORKER_DONE && m->others[w].report == NULL))
            return false;
    return true;
}

static void lead(pl_mover *m)
{
    pl_worker_phase own = own_phase(m);
    pl_mutex_lock(&m->lock);
    pl_matmul_phase before = m->job;
    if (m->job == PL_MATMUL_WAITS && own >= PL_WORKER_READY &&
        all_are(m, PL_WORKER_READY))
        m->job = PL_MATMUL_RUNS;
    if (m->job == PL_MATMUL_RUNS && own == PL_WORKER_DONE &&
        all_are(m, PL_WORKER_DONE))
        m->job = PL_MATMUL_OVER;
    if (m->job != before)
        pl_cond_broadcast(&m->moved);
    pl_mutex_unlock(&m->lock);
}

pl_status pl_mover_meet(pl_mover *m)
{
    int64_t now = now_ns();
    for (int32_t w = 0; w < m->opts.placement->job.workers; w++) {
        pl_colleague *other = &m->others[w];
        if (other->end == NULL || now - other->asked_ns < AGAIN_NS)
            continue;
        other->asked_ns = now;
        if (!other->joined)
            PL_TRY(send_join(m, other));
        if (w == 0)
            PL_TRY(send_heart(m));
    }
    if (m->opts.worker == 0)
        lead(m);
    return PL_OK;
}

pl_status pl_mover_check_silence(pl_mover *m)
{
    int64_t now = now_ns();
    pl_mutex_lock(&m->lock);
    bool waits = m->job == PL_MATMUL_WAITS;
    pl_mutex_unlock(&m->lock);
    for (int32_t w = 0; w < m->opts.placement->job.workers; w++) {
        const pl_colleague *other = &m->others[w];
        /* Worker 0 hears from all, the others from worker 0. */
        if (w == m->opts.worker || (m->opts.worker != 0 && w != 0) ||
            other->told)
            continue;
        if (other->heard_ns == 0 && waits && pl_deadline_passed(m->join))
            return PL_FAIL(PL_TIMEOUT,
                           "worker %d at %s was not there within %lld s; "
                           "start it with --cluster and --index %d",
                           w, other->address,
                           (long long)(m->opts.join_ms / 1000), w);
        if (other->heard_ns != 0 &&
            now - other->heard_ns > m->opts.silence_ms * 1000000)
            return PL_FAIL(PL_PEER,
                           "worker %d at %s has said nothing for %lld s: it is "
                           "lost, and the product with it",
                           w, other->address,
                           (long long)(m->opts.silence_ms / 1000));
    }
    return PL_OK;
}
