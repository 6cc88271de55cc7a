/* Lines of JSON over two pipes: decides how long to wait for a full pipe, and
 * when to move received bytes. */
#include "job/hosts/agent_channel.h"

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

pl_status pl_agent_channel_init(pl_agent_channel *channel, int in, int out)
{
    *channel = (pl_agent_channel) { .in = in, .out = out };
    set_nonblocking(in);
    set_nonblocking(out);
    pl_status status = PL_NEW(channel->buffer, FIRST_BYTES);
    if (status != PL_OK) {
        pl_agent_channel_close(channel);
        return status;
    }
    channel->room = FIRST_BYTES;
    return PL_OK;
}

void pl_agent_channel_close(pl_agent_channel *channel)
{
    if (channel->in >= 0)
        close(channel->in);
    if (channel->out >= 0)
        close(channel->out);
    pl_mem_free(channel->buffer);
    *channel = (pl_agent_channel) { .in = -1, .out = -1 };
}

static pl_status put(pl_agent_channel *channel, const char *text, size_t bytes)
{
    pl_deadline deadline = pl_deadline_in_ms(pl_clock_real(), SEND_MS);
    while (bytes > 0) {
        ssize_t wrote = write(channel->out, text, bytes);
        if (wrote > 0) {
            text += wrote;
            bytes -= (size_t)wrote;
            continue;
        }
        if (wrote < 0 && errno != EAGAIN && errno != EINTR)
            return PL_FAIL(PL_CLOSED, "the connection was lost: %s",
                           strerror(errno));
        if (pl_deadline_passed(deadline))
            return PL_FAIL(PL_CLOSED, "the other end does not read");
        struct pollfd ready = { .fd = channel->out, .events = POLLOUT };
        poll(&ready, 1, LOOK_MS);
    }
    return PL_OK;
}

pl_status pl_agent_channel_send(pl_agent_channel *channel,
                                const pl_json *message)
{
    char *text, *line;
    if (channel->out < 0)
        return PL_FAIL(PL_CLOSED, "the connection was lost");
    PL_TRY(pl_json_text(message, 0, &text));
    pl_status status = pl_mem_format(&line, "%s\n", text);
    pl_mem_free(text);
    PL_TRY(status);
    status = put(channel, line, strlen(line));
    pl_mem_free(line);
    return status;
}

/* Move unread bytes to the front when that frees at least half of the buffer,
 * so that a byte is moved once on average, however many lines arrive at
 * once. */
static pl_status make_room(pl_agent_channel *channel)
{
    if (channel->used < channel->room)
        return PL_OK;
    if (channel->begin >= channel->room / 2) {
        channel->used -= channel->begin;
        channel->searched -= channel->begin;
        memmove(channel->buffer, channel->buffer + channel->begin,
                channel->used);
        channel->begin = 0;
        return PL_OK;
    }
    if (channel->used - channel->begin >= PL_AGENT_CHANNEL_LINE_MAX)
        return PL_FAIL(PL_PEER, "a line of more than %zu bytes",
                       PL_AGENT_CHANNEL_LINE_MAX);
    PL_TRY(PL_RESIZE(channel->buffer, 2 * channel->room));
    channel->room *= 2;
    return PL_OK;
}

/* Read what has arrived, without blocking. */
static pl_status fill(pl_agent_channel *channel)
{
    while (!channel->ended) {
        PL_TRY(make_room(channel));
        ssize_t got = read(channel->in, channel->buffer + channel->used,
                           channel->room - channel->used);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
            return PL_OK;
        if (got <= 0) {
            channel->ended = true;
            return PL_OK;
        }
        channel->used += (size_t)got;
        if (memchr(channel->buffer + channel->used - got, '\n', (size_t)got) !=
            NULL)
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

/* The end of the first line; NULL: it has not arrived. */
static const char *find_end(pl_agent_channel *channel)
{
    const char *from = channel->buffer + channel->searched;
    const char *end = memchr(from, '\n', channel->used - channel->searched);
    channel->searched =
        end != NULL ? (size_t)(end - channel->buffer) + 1 : channel->used;
    return end;
}

pl_status pl_agent_channel_receive(pl_agent_channel *channel, pl_json **out)
{
    const char *end = find_end(channel);
    if (end == NULL) {
        PL_TRY(fill(channel));
        end = find_end(channel);
    }
    if (end == NULL && !channel->ended)
        return PL_AGAIN;
    if (end == NULL)
        return PL_FAIL(PL_CLOSED, "the other end closed the connection");
    const char *line = channel->buffer + channel->begin;
    channel->begin = channel->searched;
    return parse(out, line, (size_t)(end - line));
}

pl_status pl_agent_channel_new(pl_json **out, const char *kind)
{
    PL_TRY(pl_json_new_object(out));
    pl_status status = pl_json_set_text(*out, "kind", kind);
    if (status != PL_OK)
        pl_json_free(*out);
    return status;
}

const char *pl_agent_channel_kind(const pl_json *message)
{
    const char *kind;
    return pl_json_get_text(message, "kind", &kind) == PL_OK ? kind : "";
}

/* Bytes of the character that begins here; 0: invalid. */
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

void pl_agent_channel_clean(char *text)
{
    while (*text != '\0') {
        int bytes = character((const unsigned char *)text);
        if (bytes == 0)
            *text = '?';
        text += bytes > 0 ? bytes : 1;
    }
}
