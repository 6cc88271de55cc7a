/* messages.h - the control language of a job.
 *
 * A supervisor uses it with its tasks on this machine, one message per packet
 * (packet.h), and with the agents of other hosts, one message per line
 * (job/hosts/agent_channel.h).  A message is one JSON object with a "kind"; a
 * table in messages.c has the members of each kind, and docs/formats/launch.md
 * lists them.
 *
 *   from a task    hello address status epoch lost rolled warning closing
 *                  final
 *   to a task      secret cluster counts gone closing final end
 *   to an agent    start signal end heartbeat record, and questions
 *   from an agent  hello output ended answer heartbeat record
 *
 * Threads: one per message. */
#ifndef PL_JOB_SUPERVISE_MESSAGES_H
#define PL_JOB_SUPERVISE_MESSAGES_H

#include "base/record/metric.h"
#include "job/cluster/cluster.h"

typedef enum pl_control_kind {
    PL_CONTROL_HELLO,   /* version */
    PL_CONTROL_ADDRESS, /* where a task listens: text */
    PL_CONTROL_STATUS,  /* the progress of a task: status */
    PL_CONTROL_EPOCH,   /* the chief ended one: epoch */
    PL_CONTROL_LOST,    /* a task was declared lost: task */
    PL_CONTROL_ROLLED,  /* the job was rolled back: from, step */
    PL_CONTROL_WARNING, /* of the chief, for the terminal: step, text */
    PL_CONTROL_CLOSING, /* the chief says goodbye; confirmed by the same kind */
    PL_CONTROL_FINAL,  /* the outcome of the job is known; confirmed by the same
                          kind once the task has the terminal */
    PL_CONTROL_SECRET, /* of the job: secret */
    PL_CONTROL_CLUSTER, /* all addresses: body */
    PL_CONTROL_COUNTS,  /* for the summary: counts */
    PL_CONTROL_GONE,    /* to ps 0: a worker is not restarted: task */
    PL_CONTROL_END,     /* the receiver should end */
    PL_CONTROL_START,   /* a task: argv, environment, secret or secret_file */
    PL_CONTROL_SIGNAL,  /* send a signal to a task: number */
    PL_CONTROL_OUTPUT,  /* a task printed a line: text, error */
    PL_CONTROL_ENDED,   /* a task: number, and its last line: text */
    PL_CONTROL_HEARTBEAT,
    PL_CONTROL_RECORD,   /* a piece of a file of the run: text is its path,
                            offset, data, last, gone */
    PL_CONTROL_ANSWER,   /* id; body has "error", or the result */
    PL_CONTROL_QUESTION, /* id; any other kind, with any members */
    PL_CONTROL_KINDS,
} pl_control_kind;

/* The progress of a task, which the supervisor shows. */
typedef struct pl_task_status {
    int64_t step;                    /* of the job, as known to this task */
    int64_t own_steps;               /* gradients this worker made */
    int64_t examples;                /* this worker's */
    int64_t dropped;                 /* of its gradients */
    double loss;                     /* of training; NAN: none yet */
    int64_t loss_examples;           /* examples in this mean */
    double test_loss, test_accuracy; /* NAN: not tested */
    double waiting;                  /* share of the time; NAN: unknown */
    int activity;                    /* pl_activity */
} pl_task_status;

/* What only the supervisor knows, for the summary. */
typedef struct pl_job_counts {
    int64_t faults;   /* deliberate (chaos.h) */
    int64_t restarts; /* of all tasks */
} pl_job_counts;

/* Members that a kind does not have are zero. */
typedef struct pl_control_message {
    pl_control_kind kind;
    pl_task task; /* of lost, gone, start, signal, output, ended */
    const char *text;
    const char *secret;       /* hexadecimal digits (net/keys.h) */
    const char *secret_file;  /* a key file that contains it instead */
    char *const *argv;        /* NULL at the end */
    char *const *environment; /* "NAME=value", NULL at the end */
    pl_task_status status;
    pl_epoch epoch;
    pl_job_counts counts;
    int32_t number; /* a signal; of ended: exit status, or minus the signal */
    bool error;     /* the line came from standard error */
    int64_t from, step;  /* of rolled; step of warning, too */
    int64_t offset;      /* of record: offset of the data in the file */
    const char *data;    /* ... in base64 */
    bool last;           /* ... and the file ends there */
    bool gone;           /* ... or: it was removed */
    int64_t id;          /* of a question */
    const pl_json *body; /* of cluster, answer and question */
    pl_json *json;       /* the decoded object, which owns the texts */
} pl_control_message;

/* The JSON object of a message, owned by the caller. */
pl_status pl_control_encode(const pl_control_message *message,
                            pl_json **out) PL_MUST_CHECK;
/* Takes ownership of *take, also on failure.  PL_PEER: not a message, or a
 * member is missing or invalid; PL_UNSUPPORTED: an unknown kind that is not a
 * question. */
pl_status pl_control_decode(pl_control_message *out,
                            pl_json *take) PL_MUST_CHECK;
void pl_control_message_close(pl_control_message *message); /* once decoded */

#endif
