/* agent_channel.h - a launcher and its agent on another host, over two pipes.
 *
 * A message is one JSON object on a line of its own.  One end writes to the
 * other's standard input and reads its standard output, through ssh or srun.
 * Sending waits at most a few seconds for a full pipe; receiving never blocks.
 *
 * Threads: one. */
#ifndef PL_JOB_HOSTS_AGENT_CHANNEL_H
#define PL_JOB_HOSTS_AGENT_CHANNEL_H

#include "base/json/json.h"

#define PL_AGENT_CHANNEL_LINE_MAX ((size_t)1 << 20) /* bytes of a message */

typedef struct pl_agent_channel {
    int in, out;  /* -1: closed */
    char *buffer; /* [room]; begin..used: received, not yet read */
    size_t begin, used, room;
    size_t searched; /* no end of line before this */
    bool ended;      /* the other end has closed */
} pl_agent_channel;

/* The channel takes ownership of the descriptors, also on failure. */
pl_status pl_agent_channel_init(pl_agent_channel *channel, int in,
                                int out) PL_MUST_CHECK;
void pl_agent_channel_close(
    pl_agent_channel *channel); /* must be initialized; closes both */

/* PL_CLOSED when the connection was lost or the other end does not read. */
pl_status pl_agent_channel_send(pl_agent_channel *channel,
                                const pl_json *message) PL_MUST_CHECK;

/* The next message, owned by the caller.  PL_AGAIN: none now, without an error
 * message; PL_CLOSED: no more will arrive; PL_PEER: not a message, with its
 * line. */
pl_status pl_agent_channel_receive(pl_agent_channel *channel,
                                   pl_json **out) PL_MUST_CHECK;

/* {"kind": kind}, to be extended. */
pl_status pl_agent_channel_new(pl_json **out, const char *kind) PL_MUST_CHECK;
/* The kind of a message; "" when it has none. */
const char *pl_agent_channel_kind(const pl_json *message);

/* Valid UTF-8 for a message, in place: other bytes become '?'. */
void pl_agent_channel_clean(char *text);

#endif
