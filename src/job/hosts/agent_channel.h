/* agent_channel.h - a launcher and its agent on another host, over two pipes.
 *
 * A message is one JSON object on a line of its own.  One end writes to the
 * other's standard input and reads its standard output, which ssh and srun
 * carry.  Sending waits a few seconds at most for a full pipe, receiving never
 * waits.
 *
 * Threads: one. */
#ifndef PL_JOB_HOSTS_AGENT_CHANNEL_H
#define PL_JOB_HOSTS_AGENT_CHANNEL_H

#include "base/json/json.h"

#define PL_AGENT_CHANNEL_LINE_MAX ((size_t)1 << 20) /* bytes of a message */

typedef struct pl_agent_channel {
    int in, out;  /* -1: closed */
    char *buffer; /* [room]; begin..used has come and was not taken yet */
    size_t begin, used, room;
    size_t searched; /* no end of a line before this */
    bool ended;      /* the other end has closed */
} pl_agent_channel;

/* The descriptors are the channel's from here on, also when it fails. */
pl_status pl_agent_channel_init(pl_agent_channel *channel, int in,
                                int out) PL_MUST_CHECK;
void pl_agent_channel_close(
    pl_agent_channel *channel); /* a zeroed one is not; closes both */

/* PL_CLOSED when the connection was lost or the other end does not read. */
pl_status pl_agent_channel_send(pl_agent_channel *channel,
                                const pl_json *message) PL_MUST_CHECK;

/* The next message, the caller's.  PL_AGAIN: none now, without a text;
 * PL_CLOSED: there will be none; PL_PEER: not a message, and its line. */
pl_status pl_agent_channel_receive(pl_agent_channel *channel,
                                   pl_json **out) PL_MUST_CHECK;

/* "{"kind": kind}", to be filled. */
pl_status pl_agent_channel_new(pl_json **out, const char *kind) PL_MUST_CHECK;
/* The kind of a message; "" when it has none. */
const char *pl_agent_channel_kind(const pl_json *message);

/* Valid UTF-8 for a message, in place: other bytes become '?'. */
void pl_agent_channel_clean(char *text);

#endif
