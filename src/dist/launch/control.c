#include "dist/launch/control.h"

#include "base/mem.h"
#include "base/thread.h"
#include "dist/launch/control_host.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define STATUS_NS ((int64_t)100 * 1000 * 1000) /* between two that are sent */
#define LOST_MS   1000 /* for a supervisor that does not read */
#define CLOSE_MS  5000 /* ... to confirm that the chief closes */
#define LOOK_MS   200  /* a wait looks at its deadline this often */

struct pl_control {
    int fd;
    pl_mutex lock;         /* of what follows up to `pending` */
    pl_task_status latest; /* status not yet sent */
    int64_t sent_ns;       /* when the last one was */
    bool pending;          /* `latest` is waiting */
    pl_mutex receiving;    /* of what follows */
    atomic_bool ended;
    atomic_bool closing; /* confirmed */
    _Atomic int64_t faults;
    bool has_cluster;
    bool has_secret;
    char secret[PL_SECRET_TEXT];
    size_t bytes; /* of the cluster in `text` */
    char text[PL_CONTROL_MOST + 1];
    char packet[PL_CONTROL_MOST + 1];
};

/* 0, or errno. */
static int put(pl_control *control, const char *text)
{
    ssize_t sent =
        send(control->fd, text, strlen(text), MSG_DONTWAIT | MSG_NOSIGNAL);
    return sent < 0 ? errno : 0;
}

/* The same for what must arrive, with a limit on the wait. */
static int put_surely(pl_control *control, const char *text)
{
    struct pollfd ready = { .fd = control->fd, .events = POLLOUT };
    pl_deadline deadline = pl_deadline_in_ms(pl_clock_real(), LOST_MS);
    int error;
    while ((error = put(control, text)) == EAGAIN || error == EINTR) {
        if (pl_deadline_passed(deadline))
            break;
        poll(&ready, 1, LOOK_MS);
    }
    return error;
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
    pl_mutex_init(&control->lock);
    pl_mutex_init(&control->receiving);
    put_surely(control, "hello");
    *out = control;
    return PL_OK;
}

static void put_status(pl_control *control)
{
    const pl_task_status *s = &control->latest;
    char text[PL_CONTROL_TASK_MOST];
    snprintf(text, sizeof text, "status %lld %lld %lld %lld %.9g %.9g %.9g",
             (long long)s->step, (long long)s->own_steps,
             (long long)s->examples, (long long)s->dropped, s->loss,
             s->test_loss, s->test_accuracy);
    control->pending = put(control, text) != 0;
}

void pl_control_free(pl_control *control)
{
    if (control == NULL)
        return;
    if (control->pending)
        put_status(control);
    pl_mutex_close(&control->lock);
    pl_mutex_close(&control->receiving);
    close(control->fd);
    pl_keys_wipe(control->secret, sizeof control->secret);
    pl_mem_free(control);
}

/* Take a message of the supervisor's from `packet`. */
static void take_packet(pl_control *control, size_t bytes)
{
    const size_t key = 7, digits = sizeof control->secret - 1;
    if (bytes > 8 && memcmp(control->packet, "cluster ", 8) == 0) {
        control->bytes = bytes - 8;
        memcpy(control->text, control->packet + 8, control->bytes);
        control->has_cluster = true;
    } else if (bytes == key + digits &&
               memcmp(control->packet, "secret ", key) == 0) {
        memcpy(control->secret, control->packet + key, digits);
        control->has_secret = true;
        pl_keys_wipe(control->packet, bytes);
    } else if (bytes > 7 && memcmp(control->packet, "faults ", 7) == 0) {
        char *end;
        control->packet[bytes] = '\0';
        int64_t faults = strtoll(control->packet + 7, &end, 10);
        if (faults >= 0 && *end == '\0')
            atomic_store(&control->faults, faults);
    } else if (bytes == 7 && memcmp(control->packet, "closing", 7) == 0) {
        atomic_store(&control->closing, true);
    }
}

static void take_all(pl_control *control)
{
    while (!control->ended) {
        ssize_t got =
            recv(control->fd, control->packet, PL_CONTROL_MOST, MSG_DONTWAIT);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
            return;
        if (got <= 0 || (got == 3 && memcmp(control->packet, "end", 3) == 0)) {
            control->ended = true;
            return;
        }
        take_packet(control, (size_t)got);
    }
}

/* Take what has arrived; does not wait. */
static void take_messages(pl_control *control)
{
    pl_mutex_lock(&control->receiving);
    take_all(control);
    pl_mutex_unlock(&control->receiving);
}

pl_status pl_control_secret(pl_control *control, pl_secret *out,
                            pl_deadline deadline)
{
    struct pollfd ready = { .fd = control->fd, .events = POLLIN };
    for (;;) {
        take_messages(control);
        if (control->has_secret)
            return pl_secret_parse(out, control->secret);
        if (control->ended)
            return PL_FAIL(PL_CLOSED, "the supervisor ends the job");
        if (pl_deadline_passed(deadline))
            return PL_FAIL(PL_TIMEOUT, "waited in vain for the secret of the "
                                       "job");
        poll(&ready, 1, LOOK_MS);
    }
}

pl_status pl_control_address(pl_control *control, const char *address)
{
    char text[PL_CONTROL_TASK_MOST];
    int length = snprintf(text, sizeof text, "address %s", address);
    if (length < 0 || (size_t)length >= sizeof text)
        return PL_FAIL(PL_USAGE,
                       "an address of %zu characters, expected at "
                       "most %d",
                       strlen(address), PL_CONTROL_TASK_MOST - 9);
    int error = put_surely(control, text);
    if (error != 0)
        return PL_FAIL(PL_CLOSED, "tell the supervisor the address %s: %s",
                       address, strerror(error));
    return PL_OK;
}

static pl_status read_cluster(const pl_control *control, pl_cluster *out)
{
    pl_json *json;
    PL_TRY(pl_json_parse(&json, control->text, control->bytes,
                         "the supervisor's cluster"));
    pl_status status = pl_cluster_from_json(out, json);
    pl_json_free(json);
    return status;
}

pl_status pl_control_cluster(pl_control *control, pl_cluster *out,
                             pl_deadline deadline)
{
    struct pollfd ready = { .fd = control->fd, .events = POLLIN };
    for (;;) {
        take_messages(control);
        if (control->has_cluster) { /* also when the end came right behind */
            control->has_cluster = false;
            return read_cluster(control, out);
        }
        if (control->ended)
            return PL_FAIL(PL_CLOSED, "the supervisor ends the job");
        if (pl_deadline_passed(deadline))
            return PL_FAIL(PL_TIMEOUT, "waited in vain for the addresses of "
                                       "all parameter servers");
        poll(&ready, 1, LOOK_MS);
    }
}

void pl_control_status(pl_control *control, const pl_task_status *status)
{
    int64_t now_ns = pl_clock_now_ns(pl_clock_real());
    pl_mutex_lock(&control->lock);
    control->latest = *status;
    control->pending = true;
    if (control->sent_ns == 0 || now_ns - control->sent_ns >= STATUS_NS) {
        put_status(control);
        control->sent_ns = now_ns;
    }
    pl_mutex_unlock(&control->lock);
}

void pl_control_lost(pl_control *control, pl_task task)
{
    char text[PL_CONTROL_TASK_MOST];
    snprintf(text, sizeof text, "lost %s %d", pl_role_text(task.role),
             task.index);
    put_surely(control, text);
}

void pl_control_final(pl_control *control)
{
    /* What is final is told with it, however short the time since the last. */
    pl_mutex_lock(&control->lock);
    if (control->pending)
        put_status(control);
    pl_mutex_unlock(&control->lock);
    put_surely(control, "final");
}

void pl_control_closing(pl_control *control)
{
    pl_deadline deadline = pl_deadline_in_ms(pl_clock_real(), CLOSE_MS);
    if (put_surely(control, "closing") != 0)
        return;
    for (;;) {
        take_messages(control);
        if (atomic_load(&control->closing) || atomic_load(&control->ended) ||
            pl_deadline_passed(deadline))
            return;
        poll(NULL, 0, 1); /* another thread may take the answer */
    }
}

int64_t pl_control_faults(pl_control *control)
{
    take_messages(control);
    return control->faults;
}

bool pl_control_ended(pl_control *control)
{
    take_messages(control);
    return control->ended;
}
