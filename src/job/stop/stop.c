/* stop.c - decides which processes may stop a job, and which socket is the
 * job's.
 *
 * Socket paths are limited in length, and a name can be replaced between a
 * check and its use.  So the folder, and on the requesting side the socket
 * itself, are opened without access rights (O_PATH) and reached through
 * /proc/self/fd: the process connects to exactly what it checked. */
#include "job/stop/stop.h"

#include "base/error.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/thread.h"
#include "job/supervise/packet.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define BACKLOG 8
#define ASK_MS  1000 /* for a peer that connects and sends nothing */
#define LOOK_MS 200  /* a wait checks its deadline this often */

struct pl_stop {
    atomic_bool *interrupt;
    int folder, listener;
    atomic_bool stopping;
    pl_thread *thread;
};

/* The address of a descriptor's path, with `name` appended, or "". */
static struct sockaddr_un address_of(int fd, const char *name)
{
    struct sockaddr_un at = { .sun_family = AF_UNIX };
    snprintf(at.sun_path, sizeof at.sun_path, "/proc/self/fd/%d%s%s", fd,
             name[0] != '\0' ? "/" : "", name);
    return at;
}

static int open_folder(const char *run)
{
    return open(run, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

static bool is_same_user(int fd)
{
    struct ucred peer;
    socklen_t bytes = sizeof peer;
    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) == 0 &&
           (peer.uid == geteuid() || peer.uid == 0);
}

/* Whether the next message is an "end". */
static bool receive_end(int fd, pl_deadline deadline)
{
    struct pollfd ready = { .fd = fd, .events = POLLIN };
    pl_control_message message;
    pl_status status;
    while ((status = pl_packet_receive(fd, &message)) == PL_AGAIN &&
           !pl_deadline_passed(deadline))
        poll(&ready, 1, LOOK_MS);
    if (status != PL_OK)
        return false;
    bool end = message.kind == PL_CONTROL_END;
    pl_control_message_close(&message);
    return end;
}

static pl_status send_end(int fd)
{
    return pl_packet_send(fd, &(pl_control_message) { .kind = PL_CONTROL_END });
}

/* --- the job's end ------------------------------------------------------ */

static void answer(pl_stop *stop, int peer)
{
    if (!is_same_user(peer) ||
        !receive_end(peer, pl_deadline_in_ms(pl_clock_real(), ASK_MS)))
        return;
    pl_log(PL_LOG_INFO, "asked to stop, as by Ctrl-C");
    atomic_store(stop->interrupt, true);
    if (send_end(peer) != PL_OK)
        return; /* the peer did not wait for the answer */
}

static pl_status stop_main(void *arg)
{
    pl_stop *stop = arg;
    while (!atomic_load(&stop->stopping)) {
        struct pollfd ready = { .fd = stop->listener, .events = POLLIN };
        poll(&ready, 1, -1); /* until pl_stop_free shuts the listener down */
        int peer = accept4(stop->listener, NULL, NULL, SOCK_CLOEXEC);
        if (peer >= 0) {
            answer(stop, peer);
            close(peer);
        } else if (!atomic_load(&stop->stopping)) {
            poll(NULL, 0, LOOK_MS); /* out of descriptors: try again later */
        }
    }
    return PL_OK;
}

static pl_status bind_socket(pl_stop *stop, const pl_stop_opts *opts)
{
    stop->folder = open_folder(opts->run);
    stop->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (stop->folder >= 0 && !opts->keep)
        unlinkat(stop->folder, PL_STOP_SOCKET, 0);
    struct sockaddr_un at = address_of(stop->folder, PL_STOP_SOCKET);
    /* The mode of an unbound socket becomes that of its file. */
    if (stop->folder < 0 || stop->listener < 0 ||
        fchmod(stop->listener, S_IRUSR | S_IWUSR) != 0 ||
        bind(stop->listener, (struct sockaddr *)&at, sizeof at) != 0) {
        pl_status status = errno == EADDRINUSE ? PL_CLOSED : PL_IO;
        return PL_FAIL(status, "bind %s/" PL_STOP_SOCKET ": %s", opts->run,
                       strerror(errno));
    }
    if (listen(stop->listener, BACKLOG) != 0)
        return PL_FAIL(PL_IO, "listen at %s/" PL_STOP_SOCKET ": %s", opts->run,
                       strerror(errno));
    return PL_OK;
}

static void close_both(pl_stop *stop)
{
    if (stop->listener >= 0)
        close(stop->listener);
    if (stop->folder >= 0)
        close(stop->folder);
    pl_mem_free(stop);
}

pl_status pl_stop_listen(pl_stop **out, const pl_stop_opts *opts)
{
    pl_stop *stop;
    PL_TRY(PL_NEW(stop, 1));
    stop->interrupt = opts->interrupt;
    stop->folder = stop->listener = -1;
    pl_status status = bind_socket(stop, opts);
    if (status != PL_OK) {
        close_both(stop);
        return status;
    }
    status = pl_thread_start(&stop->thread, "stop", stop_main, stop);
    if (status != PL_OK) {
        pl_stop_free(stop);
        return status;
    }
    *out = stop;
    return PL_OK;
}

void pl_stop_free(pl_stop *stop)
{
    if (stop == NULL)
        return;
    unlinkat(stop->folder, PL_STOP_SOCKET, 0);
    atomic_store(&stop->stopping, true);
    shutdown(stop->listener, SHUT_RDWR); /* wakes the thread */
    if (pl_thread_join(stop->thread) != PL_OK)
        pl_log(PL_LOG_WARN, "%s", pl_error_message());
    close_both(stop);
}

/* --- the requesting side ------------------------------------------------ */

static bool is_own_socket(int fd)
{
    struct stat info;
    return fstat(fd, &info) == 0 && S_ISSOCK(info.st_mode) &&
           info.st_uid == geteuid();
}

/* A descriptor of the folder's socket, not yet checked; -1: none. */
static int open_socket(const char *run)
{
    int folder = open_folder(run);
    if (folder < 0)
        return -1;
    int fd = openat(folder, PL_STOP_SOCKET, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    int error = errno;
    close(folder);
    errno = error;
    return fd;
}

bool pl_stop_is_there(const char *run)
{
    int fd = open_socket(run);
    if (fd < 0)
        return false;
    bool own = is_own_socket(fd);
    close(fd);
    return own;
}

static pl_status converse(int peer, const char *run, pl_deadline deadline)
{
    if (!is_same_user(peer))
        return PL_FAIL(PL_PEER, "%s/" PL_STOP_SOCKET " is another user's", run);
    PL_TRY(send_end(peer));
    if (receive_end(peer, deadline))
        return PL_OK;
    return PL_FAIL(PL_TIMEOUT,
                   "the job of %s does not confirm that it stops; press Ctrl-C "
                   "where it was started",
                   run);
}

static pl_status ask(int fd, const char *run, pl_deadline deadline)
{
    struct sockaddr_un at = address_of(fd, "");
    if (!is_own_socket(fd))
        return PL_FAIL(PL_PEER,
                       "%s/" PL_STOP_SOCKET ": expected a socket of this user",
                       run);
    int peer =
        socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (peer < 0)
        return PL_FAIL(PL_IO, "make a socket: %s", strerror(errno));
    pl_status status;
    if (connect(peer, (struct sockaddr *)&at, sizeof at) == 0)
        status = converse(peer, run, deadline);
    else
        status = PL_FAIL(errno == ECONNREFUSED ? PL_NOTFOUND : PL_IO,
                         "connect to %s/" PL_STOP_SOCKET ": %s", run,
                         strerror(errno));
    close(peer);
    return status;
}

pl_status pl_stop_ask(const char *run, pl_deadline deadline)
{
    int fd = open_socket(run);
    if (fd < 0)
        return PL_FAIL(PL_NOTFOUND, "open %s/" PL_STOP_SOCKET ": %s", run,
                       strerror(errno));
    pl_status status = ask(fd, run, deadline);
    close(fd);
    return status;
}
