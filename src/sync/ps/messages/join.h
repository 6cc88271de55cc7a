/* join.h - the text of JOIN and WELCOME: JSON, written and read from one table
 * each.
 *
 * Threads: any. */
#ifndef PL_SYNC_PS_MESSAGES_JOIN_H
#define PL_SYNC_PS_MESSAGES_JOIN_H

#include "base/json/fields.h"
#include "net/endpoint.h"

#define PL_PS_JOIN_MOST ((uint32_t)1 << 20) /* bytes of a JOIN's text */

/* A task describes itself.  Texts are borrowed from the JSON. */
typedef struct pl_ps_join_text {
    const char *role; /* "worker", "evaluator", "ps" */
    int32_t index;    /* of a worker: the chief is number 0 */
    bool has_size;  /* of a worker or evaluator: the next fields, up to tests */
    int64_t floats; /* of the whole parameter block */
    int64_t table_first, table_count; /* sparse weights in it; 0: dense */
    int64_t trained; /* running averages begin here in the block; 0: none */
    double average_rate;
    int64_t end_step, run_steps;
    bool has_tests; /* the chief's tests affect training: when they are due */
    int64_t test_count, test_each; /* as in pl_due_steps */
    const char *job;               /* 16 hexadecimal digits; "": unknown */
    const char *shm;               /* an offer of shared memory; NULL: none */
    const char *host; /* of a server: its address; NULL: not given */
    bool has_process;
    int64_t process;
    int64_t started_ms;      /* since boot; 0: not given */
    const char *boot;        /* id of the boot; NULL: not given */
    const char *run;         /* the chief's run folder; NULL: not given */
    bool ask;                /* only ask whether it may join */
    const pl_json *settings; /* what all tasks must agree on, or NULL */
} pl_ps_join_text;

extern const pl_fields pl_ps_join_fields;

/* The JSON and its fields; the caller frees *json, which `out` borrows from.
 * PL_FORMAT. */
pl_status pl_ps_join_parse(pl_ps_join_text *out, pl_json **json,
                           const pl_message *message) PL_MUST_CHECK;

typedef struct pl_ps_welcome_text {
    const char *job; /* as above, once the chief has sent it */
    const char *shm; /* the answer to an offer; "": TCP */
    const char *run; /* the chief's run folder; NULL: unknown */
} pl_ps_welcome_text;

extern const pl_fields pl_ps_welcome_fields;

/* A job's number as text; "": 0, unknown. */
void pl_ps_job_text(uint64_t job, char text[20]);
uint64_t pl_ps_job_number(const char *text);

#endif
