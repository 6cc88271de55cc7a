#include "dist/launch/talk.h"

#include "base/clock.h"
#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#define SEND_MS     5000
#define LOOK_MS     200
#define FIRST_BYTES 4096

static void set_nonblocking(int fd)
{
    int flags = fcntl(fd, F_GETFL);
    if (flags >= 0)
        fcntl(fd, F_SETFL, flags | O_NONBLOCK);
}

pl_status pl_talk_init(pl_talk *talk, int in, int out)
{
    *talk = (pl_talk) { .in = in, .out = out };
    set_nonblocking(in);
    set_nonblocking(out);
    pl_status status = PL_NEW(talk->buffer, FIRST_BYTES);
    if (status != PL_OK) {
        pl_talk_close(talk);
        return status;
    }
    talk->room = FIRST_BYTES;
    return PL_OK;
}

void pl_talk_close(pl_talk *talk)
{
    if (talk->in >= 0)
        close(talk->in);
    if (talk->out >= 0)
        close(talk->out);
    pl_mem_free(talk->buffer);
    *talk = (pl_talk) { .in = -1, .out = -1 };
}

static pl_status put(pl_talk *talk, const char *text, size_t bytes)
{
    pl_deadline deadline = pl_deadline_in_ms(pl_clock_real(), SEND_MS);
    while (bytes > 0) {
        ssize_t wrote = write(talk->out, text, bytes);
        if (wrote > 0) {
            text += wrote;
            bytes -= (size_t)wrote;
            continue;
        }
        if (wrote < 0 && errno != EAGAIN && errno != EINTR)
            return PL_FAIL(PL_CLOSED, "the other end is gone: %s",
                           strerror(errno));
        if (pl_deadline_passed(deadline))
            return PL_FAIL(PL_CLOSED, "the other end does not read");
        struct pollfd ready = { .fd = talk->out, .events = POLLOUT };
        poll(&ready, 1, LOOK_MS);
    }
    return PL_OK;
}

pl_status pl_talk_send(pl_talk *talk, const pl_json *message)
{
    char *text, *line;
    if (talk->out < 0)
        return PL_FAIL(PL_CLOSED, "the other end is gone");
    PL_TRY(pl_json_text(message, 0, &text));
    pl_status status = pl_mem_format(&line, "%s\n", text);
    pl_mem_free(text);
    PL_TRY(status);
    status = put(talk, line, strlen(line));
    pl_mem_free(line);
    return status;
}

static pl_status make_room(pl_talk *talk)
{
    if (talk->used < talk->room)
        return PL_OK;
    if (talk->room >= PL_TALK_LINE_MAX)
        return PL_FAIL(PL_PEER, "a line of more than %zu bytes",
                       PL_TALK_LINE_MAX);
    char *more = pl_mem_resize(talk->buffer, 2 * talk->room, 1);
    PL_TRY(pl_mem_check(more, 2 * talk->room, 1));
    talk->buffer = more;
    talk->room *= 2;
    return PL_OK;
}

/* Take what has come; does not wait. */
static pl_status fill(pl_talk *talk)
{
    while (!talk->ended) {
        PL_TRY(make_room(talk));
        ssize_t got =
            read(talk->in, talk->buffer + talk->used, talk->room - talk->used);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
            return PL_OK;
        if (got <= 0) {
            talk->ended = true;
            return PL_OK;
        }
        talk->used += (size_t)got;
        if (memchr(talk->buffer + talk->used - got, '\n', (size_t)got) != NULL)
            return PL_OK; /* the rest later */
    }
    return PL_OK;
}

static pl_status parse(pl_json **out, const char *line, size_t bytes)
{
    pl_status status = pl_json_parse(out, line, bytes, "message");
    if (status == PL_OK || status == PL_NOMEM)
        return status;
    return PL_FAIL(PL_PEER, "expected a message, found \"%.*s\"",
                   (int)(bytes < 200 ? bytes : 200), line);
}

pl_status pl_talk_receive(pl_talk *talk, pl_json **out)
{
    char *end = memchr(talk->buffer, '\n', talk->used);
    if (end == NULL) {
        PL_TRY(fill(talk));
        end = memchr(talk->buffer, '\n', talk->used);
    }
    if (end == NULL && !talk->ended)
        return PL_AGAIN;
    if (end == NULL)
        return PL_FAIL(PL_CLOSED, "the other end has closed");
    size_t bytes = (size_t)(end - talk->buffer);
    pl_status status = parse(out, talk->buffer, bytes);
    talk->used -= bytes + 1;
    memmove(talk->buffer, end + 1, talk->used);
    return status;
}

pl_status pl_talk_new(pl_json **out, const char *kind)
{
    PL_TRY(pl_json_new_object(out));
    pl_status status = pl_json_set_text(*out, "kind", kind);
    if (status != PL_OK)
        pl_json_free(*out);
    return status;
}

const char *pl_talk_kind(const pl_json *message)
{
    const char *kind;
    return pl_json_get_text(message, "kind", &kind) == PL_OK ? kind : "";
}

/* Bytes of the character that begins here; 0: none does. */
static int character(const unsigned char *at)
{
    int more = *at < 0x80                  ? 0
               : *at >= 0xc2 && *at < 0xe0 ? 1
               : *at >= 0xe0 && *at < 0xf0 ? 2
               : *at >= 0xf0 && *at < 0xf5 ? 3
                                           : -1;
    for (int i = 1; i <= more; i++)
        if ((at[i] & 0xc0) != 0x80)
            return 0;
    bool bad = (*at == 0xe0 && at[1] < 0xa0) || (*at == 0xed && at[1] > 0x9f) ||
               (*at == 0xf0 && at[1] < 0x90) || (*at == 0xf4 && at[1] > 0x8f);
    return bad ? 0 : more + 1;
}

void pl_talk_clean(char *text)
{
    while (*text != '\0') {
        int bytes = character((const unsigned char *)text);
        if (bytes == 0)
            *text = '?';
        text += bytes > 0 ? bytes : 1;
    }
}
