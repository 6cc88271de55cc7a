/* talk.h - a launcher and its helper on another host, over two pipes.
 *
 * A message is one JSON object on a line of its own.  One end writes to the
 * other's standard input and reads its standard output, which ssh and srun
 * carry.  Sending waits a few seconds at most for a full pipe, receiving never
 * waits.
 *
 * Threads: one. */
#ifndef PL_DIST_LAUNCH_TALK_H
#define PL_DIST_LAUNCH_TALK_H

#include "base/json.h"

#define PL_TALK_LINE_MAX ((size_t)1 << 20) /* bytes of a message */

typedef struct pl_talk {
    int in, out;  /* -1: closed */
    char *buffer; /* what has come and was not taken yet */
    size_t used, room;
    bool ended; /* the other end has closed */
} pl_talk;

/* The descriptors are the talk's from here on, also when it fails. */
pl_status pl_talk_init(pl_talk *talk, int in, int out) PL_MUST_CHECK;
void pl_talk_close(pl_talk *talk); /* a zeroed one is not; closes both */

/* PL_CLOSED when the other end is gone or does not read. */
pl_status pl_talk_send(pl_talk *talk, const pl_json *message) PL_MUST_CHECK;

/* The next message, the caller's.  PL_AGAIN: none now, without a text;
 * PL_CLOSED: there will be none; PL_PEER: not a message, and its line. */
pl_status pl_talk_receive(pl_talk *talk, pl_json **out) PL_MUST_CHECK;

/* "{"kind": kind}", to be filled. */
pl_status pl_talk_new(pl_json **out, const char *kind) PL_MUST_CHECK;
/* The kind of a message; "" when it has none. */
const char *pl_talk_kind(const pl_json *message);

/* Valid UTF-8 for a message, in place: other bytes become '?'. */
void pl_talk_clean(char *text);

#endif
