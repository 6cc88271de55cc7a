/* frame.h - the header of every message between tasks.
 *
 * One fixed header in little-endian bytes, then a payload.  The header says
 * who means what (kind), for which life of the job and of the worker
 * (generation, incarnation), which request it belongs to (sequence), and
 * which floats the payload holds.  docs/formats/wire.md has the bytes.
 *
 * Threads: any. */
#ifndef PL_NET_FRAME_H
#define PL_NET_FRAME_H

#include "paceline/base.h"

#include <stddef.h>
#include <stdint.h>

#define PL_FRAME_VERSION 2
#define PL_FRAME_BYTES   72
/* The most a payload may have: one piece and its keys, or a text. */
#define PL_FRAME_PAYLOAD_MAX ((uint32_t)16 << 20)

/* What a message is; the comment tells who sends it. */
#define PL_FRAME_KIND_LIST(X)                                                  \
    X(JOIN, "join")       /* task: I am here; text: who and which job */       \
    X(WELCOME, "welcome") /* ps: you are in; text: what you need to know */    \
    X(REFUSE, "refuse")   /* ps: you are not; text: why */                     \
    X(INIT, "init")       /* chief: one piece of the first parameters */       \
    X(PULL, "pull")       /* task: send me your parameters */                  \
    X(PUSH, "push")       /* worker: one piece of a gradient */                \
    X(PARAMS, "params")   /* ps: one piece of the parameters */                \
    X(ACK, "ack")         /* anyone: this piece has arrived */                 \
    X(HEARTBEAT, "heartbeat")         /* task: step, phase and progress */     \
    X(HEARTBEAT_ACK, "heartbeat ack") /* ... and the answer */                 \
    X(PAUSE, "pause")       /* chief: evaluating, do not wait for me */        \
    X(STOP, "stop")         /* chief: end the job; text: why */                \
    X(OVER, "over")         /* ps: the job is over; text: why */               \
    X(BYE, "bye")           /* task: I am done; text: its report */            \
    X(REPORT, "report")     /* ps: all reports, to the chief */                \
    X(HAVE, "have")         /* ps to ps 0: a gradient is complete here */      \
    X(APPLY, "apply")       /* ps 0 to ps: make this update */                 \
    X(LOAD, "load")         /* chief: read your part; counts, a plan */        \
    X(SAVE, "save")         /* chief: write your part; counts, a plan */       \
    X(SAVED, "saved")       /* ps to ps 0: it is written; and back: heard */   \
    X(LINK, "link")         /* worker to worker: I send to you from here on */ \
    X(LINKED, "linked")     /* ... and the answer */                           \
    X(ROLL, "roll")         /* chief: this generation is over; text: why */    \
    X(READY, "ready")       /* worker to the one before: a sum has begun */    \
    X(PIECE, "piece")       /* worker to the next: one piece of a sum */       \
    X(DONE, "done")         /* worker to the one before: the sum is done */    \
    X(EXCHANGE, "exchange") /* worker to the chief: its status */              \
    X(EXCHANGED, "exchanged") /* chief: the combined status */                 \
    X(SHARE, "share")         /* worker: whose examples shall I read? */

#define PL_FRAME_ENUM(name, text) PL_FRAME_##name,
typedef enum pl_frame_kind {
    PL_FRAME_NONE,
    PL_FRAME_KIND_LIST(PL_FRAME_ENUM) PL_FRAME_KINDS,
} pl_frame_kind;
#undef PL_FRAME_ENUM

typedef struct pl_frame {
    pl_frame_kind kind;
    uint8_t flags;        /* of the kind */
    uint32_t generation;  /* of the job: rises when it is rolled back */
    uint32_t incarnation; /* of the task this is from or to; 0: none yet */
    uint64_t sequence;    /* of the request; an answer has the request's */
    int64_t step;         /* a gradient's, or the parameters' version */
    int64_t first;        /* of the floats: place in the parameter block */
    uint32_t count;       /* floats that the payload begins with, or that are
                             encoded there */
    uint32_t key_count;   /* keys behind them, as a list; 0: dense */
    int64_t value[2];     /* of the kind */
    uint32_t payload_bytes;
} pl_frame;

const char *pl_frame_kind_text(pl_frame_kind kind); /* "push" */

void pl_frame_write(const pl_frame *frame, uint8_t out[PL_FRAME_BYTES]);

/* Check and read a header that came with `payload_bytes` of payload.
 * PL_UNSUPPORTED: another version of the protocol; PL_FORMAT: not ours. */
pl_status pl_frame_read(pl_frame *out, const void *bytes, size_t size,
                        size_t payload_bytes) PL_MUST_CHECK;

#endif
