/* messages.h - the messages of membership, one struct for each kind.
 *
 *   member to coordinator         coordinator to member
 *   JOIN       every 200 ms until the generation forms
 *                                 ACK        the coordinator is up
 *                                 WELCOME    the generation has formed
 *                                 REFUSE     the member is not admitted
 *   HEARTBEAT  5 in a timeout     ACK        with the coordinator's clock
 *                                 ROLL       the generation is over: join again
 *   REPORT     until it is        ACK        ... of that number
 *   STOP       the member failed  OVER       the job is over
 *   OVER       ... acknowledges the end
 *
 * encode gives the frame's header, whose payload is the struct's text or bytes;
 * decode checks all that can be checked without knowing the job, and does not
 * copy the payload.  docs/formats/wire.md describes the bytes.
 *
 * Threads: any. */
#ifndef PL_JOB_MEMBER_MESSAGES_H
#define PL_JOB_MEMBER_MESSAGES_H

#include "job/member/liveness.h"
#include "net/endpoint.h"

typedef struct pl_join_message {
    int32_t member;
    uint32_t incarnation; /* of the process; not 0 */
    uint32_t generation;  /* the last one it was in; 0: none */
    int64_t attempt;      /* rises with each attempt to join; from 1 */
    bool ready;           /* false: it is announced, but cannot take part yet */
    const char *facts;    /* facts that the strategy compares */
    uint32_t fact_bytes;
} pl_join_message;

typedef struct pl_welcome_message {
    uint32_t incarnation, generation; /* the coordinator's, the new one */
    int64_t attempt;                  /* the attempt that it answers */
    const void *facts;                /* the strategy's */
    uint32_t fact_bytes;
} pl_welcome_message;

typedef struct pl_heartbeat_message {
    int32_t member;
    uint32_t incarnation, generation;
    uint64_t number; /* from 1 */
    pl_vital vital;
    int64_t transfers; /* the strategy's messages so far */
} pl_heartbeat_message;

typedef struct pl_ack_message {
    uint32_t incarnation, generation; /* the coordinator's */
    uint64_t number;                  /* of the heartbeat; 0: of a JOIN */
    int64_t clock_ns;                 /* the coordinator's */
    bool reported;                    /* the member's report has arrived */
} pl_ack_message;

/* REFUSE, ROLL, OVER, STOP and REPORT (PL_FRAME_BYE) carry a text. */
typedef struct pl_note_message {
    pl_frame_kind kind;
    int32_t member; /* the sender; 0 from the coordinator */
    uint32_t incarnation, generation;
    bool failed;
    bool usage; /* ... because of a usage error */
    const char *text;
    uint32_t text_bytes;
} pl_note_message;

pl_frame pl_join_encode(const pl_join_message *join);
bool pl_join_decode(pl_join_message *out, const pl_message *message);
pl_frame pl_welcome_encode(const pl_welcome_message *welcome);
bool pl_welcome_decode(pl_welcome_message *out, const pl_message *message);
pl_frame pl_heartbeat_encode(const pl_heartbeat_message *heartbeat);
bool pl_heartbeat_decode(pl_heartbeat_message *out, const pl_message *message);
pl_frame pl_ack_encode(const pl_ack_message *ack);
bool pl_ack_decode(pl_ack_message *out, const pl_message *message);
pl_frame pl_note_encode(const pl_note_message *note);
bool pl_note_decode(pl_note_message *out, const pl_message *message);

/* Whether a frame of this kind belongs to membership. */
bool pl_member_message(pl_frame_kind kind);

#endif
