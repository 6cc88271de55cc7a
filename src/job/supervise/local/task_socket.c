/* The control socket between the supervisor and a task on this machine: decides
 * which of its failures count.  A task that is gone and a malformed message are
 * logged; only a lack of memory fails. */
#include "job/supervise/local/task_socket.h"

#include "base/log.h"
#include "job/supervise/packet.h"

#include <unistd.h>

static pl_status send_secret(pl_task_socket *socket, const pl_secret *secret)
{
    char text[PL_SECRET_TEXT];
    pl_secret_text(secret, text);
    pl_status status = pl_task_socket_send(
        socket,
        &(pl_control_message) { .kind = PL_CONTROL_SECRET, .secret = text });
    pl_keys_wipe(text, sizeof text);
    return status;
}

pl_status pl_task_socket_open(pl_task_socket *out, pl_task task,
                              const pl_secret *secret, int *theirs)
{
    pl_task_socket_close(out);
    out->task = task;
    PL_TRY(pl_packet_pair(&out->fd, theirs));
    pl_status status = secret != NULL ? send_secret(out, secret) : PL_OK;
    if (status != PL_OK) {
        close(*theirs);
        pl_task_socket_close(out);
    }
    return status;
}

void pl_task_socket_close(pl_task_socket *socket)
{
    if (socket->fd >= 0)
        close(socket->fd);
    socket->fd = -1;
}

pl_status pl_task_socket_send(pl_task_socket *socket,
                              const pl_control_message *message)
{
    if (socket->fd < 0)
        return PL_OK;
    pl_status status = pl_packet_send(socket->fd, message);
    if (status == PL_NOMEM)
        return status;
    if (status != PL_OK)
        pl_log(PL_LOG_DEBUG, "%s", pl_error_message());
    return PL_OK;
}

pl_status pl_task_socket_take(pl_task_socket *socket,
                              const pl_host_events *events)
{
    while (socket->fd >= 0) {
        pl_control_message message;
        pl_status status = pl_packet_receive(socket->fd, &message);
        if (status == PL_AGAIN || status == PL_NOMEM)
            return status == PL_AGAIN ? PL_OK : status;
        if (status == PL_OK) {
            events->message(events->context, socket->task, &message);
            pl_control_message_close(&message);
        } else if (status == PL_CLOSED) {
            pl_task_socket_close(socket);
        } else {
            pl_log(PL_LOG_WARN, "%s %d: %s", pl_role_text(socket->task.role),
                   socket->task.index, pl_error_message());
        }
    }
    return PL_OK;
}
