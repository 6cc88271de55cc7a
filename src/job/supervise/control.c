/* A task's end of its control socket: decides what is sent immediately, what
 * may be skipped, and which of the supervisor's messages are kept until the
 * task reads them. */
#include "job/supervise/control.h"

#include "base/mem.h"
#include "base/thread.h"
#include "job/supervise/packet.h"

#include <fcntl.h>
#include <poll.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define STATUS_NS ((int64_t)100 * 1000 * 1000) /* between statuses */
#define LOST_MS   1000  /* for a supervisor that does not read */
#define CLOSE_MS  60000 /* ... to confirm the chief's closing */
#define FINAL_MS  5000  /* ... to leave the terminal */
#define LOOK_MS   200   /* a wait checks its deadline this often */

struct pl_control {
    int fd;
    pl_mutex lock;         /* guards the fields up to `pending` */
    pl_task_status latest; /* status not yet sent */
    int64_t sent_ns;       /* when the last one was sent */
    bool pending;          /* `latest` is to be sent */
    pl_mutex receiving;    /* guards the following */
    atomic_bool ended;
    atomic_bool closed;         /* the supervisor is gone: no more messages */
    atomic_bool closing, final; /* confirmed */
    pl_job_counts counts;
    pl_task gone[PL_CLUSTER_WORKERS_MAX]; /* received and not yet read */
    int32_t gone_count;
    pl_control_message secret;  /* the last one; of another kind: none yet */
    pl_control_message cluster; /* the last one not yet read */
};

/* Send a message that must arrive, with a limit on the wait. */
static pl_status send_surely(pl_control *control,
                             const pl_control_message *message)
{
    struct pollfd ready = { .fd = control->fd, .events = POLLOUT };
    pl_deadline deadline = pl_deadline_in_ms(pl_clock_real(), LOST_MS);
    pl_status status;
    while ((status = pl_packet_send(control->fd, message)) == PL_AGAIN &&
           !pl_deadline_passed(deadline))
        poll(&ready, 1, LOOK_MS);
    return status;
}

static pl_status say(pl_control *control, pl_control_kind kind)
{
    return send_surely(control, &(pl_control_message) { .kind = kind });
}

pl_status pl_control_new(pl_control **out, int fd)
{
    int type = 0;
    socklen_t bytes = sizeof type;
    if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &bytes) != 0 ||
        type != SOCK_SEQPACKET || fcntl(fd, F_SETFD, FD_CLOEXEC) != 0)
        return PL_FAIL(PL_USAGE,
                       "--control %d: not a socket of a supervisor; the flag "
                       "is for the tasks that --workers and --ps start",
                       fd);
    pl_control *control;
    PL_TRY(PL_NEW(control, 1));
    control->fd = fd;
    if (send_surely(control, &(pl_control_message) {
                                 .kind = PL_CONTROL_HELLO,
                                 .text = pl_version(),
                             }) == PL_NOMEM) {
        pl_mem_free(control); /* a missing supervisor is detected later */
        return PL_NOMEM;
    }
    pl_mutex_init(&control->lock);
    pl_mutex_init(&control->receiving);
    *out = control;
    return PL_OK;
}

static void send_status(pl_control *control)
{
    pl_status status =
        pl_packet_send(control->fd, &(pl_control_message) {
                                        .kind = PL_CONTROL_STATUS,
                                        .status = control->latest,
                                    });
    control->pending = status != PL_OK;
}

void pl_control_free(pl_control *control)
{
    if (control == NULL)
        return;
    if (control->pending)
        send_status(control);
    pl_mutex_close(&control->lock);
    pl_mutex_close(&control->receiving);
    close(control->fd);
    pl_control_message_close(&control->secret);
    pl_control_message_close(&control->cluster);
    pl_mem_free(control);
}

static void keep(pl_control_message *place, pl_control_message *message)
{
    pl_control_message_close(place);
    *place = *message;
    *message = (pl_control_message) { 0 };
}

static void take(pl_control *control, pl_control_message *message)
{
    switch (message->kind) {
    case PL_CONTROL_SECRET:
        keep(&control->secret, message);
        break;
    case PL_CONTROL_CLUSTER:
        keep(&control->cluster, message);
        break;
    case PL_CONTROL_COUNTS:
        control->counts = message->counts;
        break;
    case PL_CONTROL_GONE:
        if (control->gone_count < PL_CLUSTER_WORKERS_MAX)
            control->gone[control->gone_count++] = message->task;
        break;
    case PL_CONTROL_CLOSING:
        atomic_store(&control->closing, true);
        break;
    case PL_CONTROL_FINAL:
        atomic_store(&control->final, true);
        break;
    case PL_CONTROL_END:
        atomic_store(&control->ended, true);
        break;
    default:
        break; /* a kind not for tasks */
    }
}

static void take_all(pl_control *control)
{
    while (!control->closed) {
        pl_control_message message;
        pl_status status = pl_packet_receive(control->fd, &message);
        if (status == PL_AGAIN)
            return;
        if (status == PL_CLOSED)
            control->closed = control->ended = true;
        if (status != PL_OK)
            continue;
        take(control, &message);
        pl_control_message_close(&message);
    }
}

/* Read the messages that have arrived, without blocking. */
static void take_messages(pl_control *control)
{
    pl_mutex_lock(&control->receiving);
    take_all(control);
    pl_mutex_unlock(&control->receiving);
}

/* Wait until `place` has a message of this kind, including one that arrived
 * before the end. */
static pl_status await(pl_control *control, const pl_control_message *place,
                       const char *what, pl_deadline deadline)
{
    struct pollfd ready = { .fd = control->fd, .events = POLLIN };
    for (;;) {
        take_messages(control);
        if (place->json != NULL)
            return PL_OK;
        if (control->ended)
            return PL_FAIL(PL_CLOSED, "the supervisor ends the job");
        if (pl_deadline_passed(deadline))
            return PL_FAIL(PL_TIMEOUT, "waited for %s, which did not arrive",
                           what);
        poll(&ready, 1, LOOK_MS);
    }
}

pl_status pl_control_secret(pl_control *control, pl_secret *out,
                            pl_deadline deadline)
{
    PL_TRY(await(control, &control->secret, "the secret of the job", deadline));
    if (control->secret.secret == NULL)
        return PL_FAIL(PL_PEER, "the supervisor's secret is in a file");
    return pl_secret_parse(out, control->secret.secret);
}

pl_status pl_control_address(pl_control *control, const char *address)
{
    pl_status status =
        send_surely(control, &(pl_control_message) { .kind = PL_CONTROL_ADDRESS,
                                                     .text = address });
    return status == PL_OK
               ? PL_OK
               : pl_context(status, "tell the supervisor the address %s",
                            address);
}

pl_status pl_control_cluster(pl_control *control, pl_cluster *out,
                             pl_deadline deadline)
{
    PL_TRY(await(control, &control->cluster,
                 "the addresses of all parameter servers", deadline));
    pl_status status = pl_cluster_from_json(out, control->cluster.json);
    pl_control_message_close(&control->cluster);
    return status;
}

void pl_control_status(pl_control *control, const pl_task_status *status)
{
    int64_t now_ns = pl_clock_now_ns(pl_clock_real());
    pl_mutex_lock(&control->lock);
    control->latest = *status;
    control->pending = true;
    if (control->sent_ns == 0 || now_ns - control->sent_ns >= STATUS_NS) {
        send_status(control);
        control->sent_ns = now_ns;
    }
    pl_mutex_unlock(&control->lock);
}

void pl_control_epoch(pl_control *control, const pl_epoch *epoch)
{
    if (pl_packet_send(control->fd, &(pl_control_message) {
                                        .kind = PL_CONTROL_EPOCH,
                                        .epoch = *epoch,
                                    }) != PL_OK)
        return; /* one line less on the terminal */
}

void pl_control_lost(pl_control *control, pl_task task)
{
    if (send_surely(control, &(pl_control_message) { .kind = PL_CONTROL_LOST,
                                                     .task = task }) != PL_OK)
        return; /* it does not read, or is gone */
}

void pl_control_rolled(pl_control *control, int64_t from, int64_t step)
{
    if (send_surely(control, &(pl_control_message) { .kind = PL_CONTROL_ROLLED,
                                                     .from = from,
                                                     .step = step }) != PL_OK)
        return; /* likewise */
}

void pl_control_warn(pl_control *control, int64_t step, const char *text)
{
    if (send_surely(control, &(pl_control_message) { .kind = PL_CONTROL_WARNING,
                                                     .step = step,
                                                     .text = text }) != PL_OK)
        return; /* likewise; it is in the log */
}

/* Wait until the supervisor has answered, or `over`. */
static void await_confirmed(pl_control *control, const atomic_bool *answered,
                            const atomic_bool *over, int64_t ms)
{
    pl_deadline deadline = pl_deadline_in_ms(pl_clock_real(), ms);
    for (;;) {
        take_messages(control);
        if (atomic_load(answered) || atomic_load(over) ||
            pl_deadline_passed(deadline))
            return;
        poll(NULL, 0, 1); /* another thread may read the answer */
    }
}

void pl_control_final(pl_control *control)
{
    /* Send the final status first, however short the time since the last
     * one. */
    pl_mutex_lock(&control->lock);
    if (control->pending)
        send_status(control);
    pl_mutex_unlock(&control->lock);
    if (say(control, PL_CONTROL_FINAL) == PL_OK) /* else by exit status */
        await_confirmed(control, &control->final, &control->closed, FINAL_MS);
}

void pl_control_closing(pl_control *control)
{
    if (say(control, PL_CONTROL_CLOSING) == PL_OK)
        await_confirmed(control, &control->closing, &control->ended, CLOSE_MS);
}

pl_job_counts pl_control_counts(pl_control *control)
{
    pl_mutex_lock(&control->receiving);
    take_all(control);
    pl_job_counts counts = control->counts;
    pl_mutex_unlock(&control->receiving);
    return counts;
}

bool pl_control_gone(pl_control *control, pl_task *out)
{
    pl_mutex_lock(&control->receiving);
    take_all(control);
    bool some = control->gone_count > 0;
    if (some)
        *out = control->gone[--control->gone_count];
    pl_mutex_unlock(&control->receiving);
    return some;
}

bool pl_control_ended(pl_control *control)
{
    take_messages(control);
    return control->ended;
}
