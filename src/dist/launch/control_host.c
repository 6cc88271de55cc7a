#include "dist/launch/control_host.h"

#include "base/mem.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

pl_status pl_control_pair(int *ours, int *theirs)
{
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
        return PL_FAIL(PL_IO, "make a socket pair: %s", strerror(errno));
    *ours = ends[0];
    *theirs = ends[1];
    return PL_OK;
}

pl_status pl_control_receive(int fd, pl_control_message *out)
{
    char text[PL_CONTROL_TASK_MOST];
    ssize_t got;
    do
        got = recv(fd, text, sizeof text - 1, MSG_DONTWAIT | MSG_TRUNC);
    /* A task that ended with a message of ours unread resets the connection:
     * that is told once, and what the task said before is still there. */
    while (got < 0 && (errno == EINTR || errno == ECONNRESET));
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
        return PL_AGAIN;
    if (got <= 0)
        return PL_FAIL(PL_CLOSED, "the task closed its control socket");
    if ((size_t)got >= sizeof text)
        return PL_FAIL(PL_PEER, "a message of %zd bytes, expected at most %zu",
                       got, sizeof text - 1);
    text[got] = '\0';
    return pl_control_parse(out, text);
}

/* A whole number of at least 0 and the blank before it; *text moves on. */
static bool take_int(const char **text, int64_t *out)
{
    char *end;
    if ((*text)[0] != ' ' || (*text)[1] < '0' || (*text)[1] > '9')
        return false;
    errno = 0;
    *out = strtoll(*text + 1, &end, 10);
    *text = end;
    return errno == 0;
}

static bool take_real(const char **text, double *out)
{
    char *end;
    if ((*text)[0] != ' ' || (*text)[1] == ' ')
        return false;
    *out = strtod(*text + 1, &end);
    bool some = end != *text + 1;
    *text = end;
    return some;
}

static bool parse_status(const char *text, pl_task_status *out)
{
    return take_int(&text, &out->step) && take_int(&text, &out->own_steps) &&
           take_int(&text, &out->examples) && take_int(&text, &out->dropped) &&
           take_real(&text, &out->loss) && take_real(&text, &out->test_loss) &&
           take_real(&text, &out->test_accuracy) && *text == '\0';
}

/* " worker 1" */
static bool parse_task(const char *text, pl_task *out)
{
    for (int role = PL_ROLE_CHIEF; role <= PL_ROLE_EVALUATOR; role++) {
        const char *name = pl_role_text((pl_role)role);
        size_t length = strlen(name);
        if (text[0] != ' ' || strncmp(text + 1, name, length) != 0)
            continue;
        const char *at = text + 1 + length;
        int64_t index;
        if (!take_int(&at, &index) || *at != '\0' || index > INT32_MAX)
            return false;
        *out = (pl_task) { (pl_role)role, (int32_t)index };
        return true;
    }
    return false;
}

/* The rest of `text` behind `word`, or NULL. */
static const char *behind(const char *text, const char *word)
{
    size_t length = strlen(word);
    return strncmp(text, word, length) == 0 ? text + length : NULL;
}

pl_status pl_control_parse(pl_control_message *out, const char *text)
{
    const char *rest;
    bool good = false;
    *out = (pl_control_message) { 0 };
    if ((rest = behind(text, "address ")) != NULL) {
        out->kind = PL_CONTROL_ADDRESS;
        good = rest[0] != '\0' && strlen(rest) < sizeof out->address;
        if (good)
            snprintf(out->address, sizeof out->address, "%s", rest);
    } else if ((rest = behind(text, "status")) != NULL) {
        out->kind = PL_CONTROL_STATUS;
        good = parse_status(rest, &out->status);
    } else if ((rest = behind(text, "lost")) != NULL) {
        out->kind = PL_CONTROL_LOST;
        good = parse_task(rest, &out->task);
    } else if (strcmp(text, "hello") == 0) {
        out->kind = PL_CONTROL_HELLO;
        good = true;
    } else if (strcmp(text, "closing") == 0) {
        out->kind = PL_CONTROL_CLOSING;
        good = true;
    } else {
        out->kind = PL_CONTROL_FINAL;
        good = strcmp(text, "final") == 0;
    }
    if (!good)
        return PL_FAIL(PL_PEER,
                       "expected hello, address, status, lost, closing or "
                       "final, found "
                       "\"%.80s\"",
                       text);
    return PL_OK;
}

static pl_status send_text(int fd, const char *text)
{
    size_t bytes = strlen(text);
    if (bytes > PL_CONTROL_MOST)
        return PL_FAIL(PL_UNSUPPORTED,
                       "a message of %zu bytes, at most %d can be sent", bytes,
                       PL_CONTROL_MOST);
    if (send(fd, text, bytes, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
        return PL_FAIL(PL_CLOSED, "send to the task: %s", strerror(errno));
    return PL_OK;
}

pl_status pl_control_send_secret(int fd, const pl_secret *secret)
{
    char text[8 + PL_SECRET_TEXT] = "secret ";
    pl_secret_text(secret, text + strlen(text));
    pl_status status = send_text(fd, text);
    pl_keys_wipe(text, sizeof text);
    return status;
}

pl_status pl_control_send_cluster(int fd, const pl_cluster *cluster)
{
    pl_json *json;
    char *body = NULL, *text = NULL;
    PL_TRY(pl_cluster_json(cluster, &json));
    pl_status status;
    PL_TRY_OUT(status, pl_json_text(json, 0, &body));
    PL_TRY_OUT(status, pl_mem_format(&text, "cluster %s", body));
    status = send_text(fd, text);
out:
    pl_json_free(json);
    pl_mem_free(body);
    pl_mem_free(text);
    return status;
}

pl_status pl_control_send_faults(int fd, int64_t faults)
{
    char text[32];
    snprintf(text, sizeof text, "faults %lld", (long long)faults);
    return send_text(fd, text);
}

pl_status pl_control_send_closing(int fd)
{
    return send_text(fd, "closing");
}

void pl_control_send_end(int fd)
{
    if (send_text(fd, "end") != PL_OK)
        return; /* it has gone, which is what was wanted */
}
