/* frame.h - the header of every message between tasks.
 *
 * One fixed header in little-endian bytes, then a payload.  The header has the
 * kind of message, the life of the job and of the worker that it belongs to
 * (generation, incarnation), its request (sequence), and which floats the
 * payload holds.  docs/formats/wire.md has the bytes.
 *
 * Threads: any. */
#ifndef PL_NET_FRAME_H
#define PL_NET_FRAME_H

#include "paceline/base.h"

#include <stddef.h>
#include <stdint.h>

#define PL_FRAME_VERSION 2
#define PL_FRAME_BYTES   72
/* The largest payload: one piece and its keys, or a text. */
#define PL_FRAME_PAYLOAD_MAX ((uint32_t)16 << 20)

/* The kind of a message; the comment begins with its sender. */
#define PL_FRAME_KIND_LIST(X)                                                  \
    X(JOIN, "join")           /* task: asks to join; text: task and job */     \
    X(WELCOME, "welcome")     /* ps: admits the task; text: job, offer, run */ \
    X(REFUSE, "refuse")       /* ps: refuses the task; text: why */            \
    X(INIT, "init")           /* chief: one piece of the first parameters */   \
    X(PULL, "pull")           /* task: asks for the parameters */              \
    X(PUSH, "push")           /* worker: one piece of a gradient */            \
    X(PARAMS, "params")       /* ps: one piece of the parameters */            \
    X(ACK, "ack")             /* both ways: the piece has arrived */           \
    X(HEARTBEAT, "heartbeat") /* task: step, phase and progress */             \
    X(HEARTBEAT_ACK, "heartbeat ack") /* ... and the answer */                 \
    X(PAUSE, "pause")       /* chief: evaluating, not to be waited for */      \
    X(STOP, "stop")         /* chief: end the job; text: why */                \
    X(OVER, "over")         /* ps: the job is over; text: why */               \
    X(BYE, "bye")           /* task: leaves the job; text: its report */       \
    X(REPORT, "report")     /* ps: all reports, to the chief */                \
    X(HAVE, "have")         /* ps to ps 0: a gradient is complete here */      \
    X(APPLY, "apply")       /* ps 0 to ps: make this update */                 \
    X(LOAD, "load")         /* chief: read a partition; counts, a request */   \
    X(SAVE, "save")         /* chief: write a partition; counts, a request */  \
    X(SAVED, "saved")       /* ps to ps 0: written; ps 0: acknowledged */      \
    X(LINK, "link")         /* worker to worker: opens their link */           \
    X(LINKED, "linked")     /* ... and the answer */                           \
    X(ROLL, "roll")         /* chief: this generation is over; text: why */    \
    X(READY, "ready")       /* worker to the previous: a sum has begun */      \
    X(PIECE, "piece")       /* worker to the next: one piece of a sum */       \
    X(DONE, "done")         /* worker to the previous: the sum is done */      \
    X(EXCHANGE, "exchange") /* worker to the chief: its status */              \
    X(EXCHANGED, "exchanged") /* chief: the combined status */                 \
    X(SHARE, "share")         /* worker: asks for a data share */

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
    uint64_t sequence;    /* of the request; repeated in its answer */
    int64_t step;         /* of the gradient, or version of the parameters */
    int64_t first;        /* offset of the floats in the parameter block */
    uint32_t count;       /* floats that the payload begins with, or that are
                             encoded there */
    uint32_t key_count;   /* keys after them, as a list; 0: dense */
    int64_t value[2];     /* of the kind */
    uint32_t payload_bytes;
} pl_frame;

const char *pl_frame_kind_text(pl_frame_kind kind); /* "push" */

void pl_frame_write(const pl_frame *frame, uint8_t out[PL_FRAME_BYTES]);

/* Check and read a header that came with `payload_bytes` of payload.
 * PL_UNSUPPORTED: another version of the protocol; PL_FORMAT: not a frame. */
pl_status pl_frame_read(pl_frame *out, const void *bytes, size_t size,
                        size_t payload_bytes) PL_MUST_CHECK;

#endif
