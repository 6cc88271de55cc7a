/* messages.h - the control language of a job.
 *
 * A supervisor speaks it with its tasks on this machine, a message in a packet
 * (packet.h), and with the agents of other hosts, a message on a line
 * (job/hosts/agent_channel.h).  A message is one JSON object with a "kind";
 * which members each kind has is a row of a table in messages.c, and
 * docs/formats/launch.md lists them.
 *
 *   from a task      hello address status epoch lost rolled warning closing
 * final to a task        secret cluster counts gone closing final end to an
 * agent      start signal end heartbeat record, and questions from an agent
 * hello output ended answer heartbeat record
 *
 * Threads: one a message. */
#ifndef PL_JOB_SUPERVISE_MESSAGES_H
#define PL_JOB_SUPERVISE_MESSAGES_H

#include "base/record/metric.h"
#include "job/cluster/cluster.h"

typedef enum pl_control_kind {
    PL_CONTROL_HELLO,   /* version */
    PL_CONTROL_ADDRESS, /* a task listens there: text */
    PL_CONTROL_STATUS,  /* how far a task is: status */
    PL_CONTROL_EPOCH,   /* the chief ended one: epoch */
    PL_CONTROL_LOST,    /* a task was declared lost: task */
    PL_CONTROL_ROLLED,  /* the job went back: from, step */
    PL_CONTROL_WARNING, /* of the chief, for the terminal: step, text */
    PL_CONTROL_CLOSING, /* the chief takes leave of the others; confirmed alike
                         */
    PL_CONTROL_FINAL,  /* the outcome of the job is known; confirmed alike, once
                          the terminal is the task's */
    PL_CONTROL_SECRET, /* of the job: secret */
    PL_CONTROL_CLUSTER, /* all addresses: body */
    PL_CONTROL_COUNTS,  /* for the summary: counts */
    PL_CONTROL_GONE,    /* to ps 0: a worker is not restarted: task */
    PL_CONTROL_END,     /* the receiver shall end */
    PL_CONTROL_START,   /* a task: argv, environment, secret or secret_file */
    PL_CONTROL_SIGNAL,  /* send a task a signal: number */
    PL_CONTROL_OUTPUT,  /* a task printed a line: text, error */
    PL_CONTROL_ENDED,   /* a task: number, and its last line: text */
    PL_CONTROL_HEARTBEAT,
    PL_CONTROL_RECORD,   /* a piece of a file of the run: text is its path,
                            offset, data, last, gone */
    PL_CONTROL_ANSWER,   /* id; body has "error", or what was asked for */
    PL_CONTROL_QUESTION, /* id; any other kind, whose members are the asker's */
    PL_CONTROL_KINDS,
} pl_control_kind;

/* How far a task is; what the supervisor shows. */
typedef struct pl_task_status {
    int64_t step;                    /* of the job, as this task knows it */
    int64_t own_steps;               /* gradients this worker made */
    int64_t examples;                /* this worker's */
    int64_t dropped;                 /* of its gradients */
    double loss;                     /* of training; NAN: none yet */
    int64_t loss_examples;           /* that it is the mean of */
    double test_loss, test_accuracy; /* NAN: not tested */
    double waiting;                  /* share of the time; NAN: not known */
    int activity;                    /* pl_activity */
} pl_task_status;

/* What only the supervisor knows, for the summary. */
typedef struct pl_job_counts {
    int64_t faults;   /* made on purpose (chaos.h) */
    int64_t restarts; /* of all tasks */
} pl_job_counts;

/* Members that a kind does not have are zero. */
typedef struct pl_control_message {
    pl_control_kind kind;
    pl_task task; /* of lost, gone, start, signal, output, ended */
    const char *text;
    const char *secret;       /* hexadecimal digits (net/keys.h) */
    const char *secret_file;  /* a key file that holds it instead */
    char *const *argv;        /* NULL at the end */
    char *const *environment; /* "NAME=value", NULL at the end */
    pl_task_status status;
    pl_epoch epoch;
    pl_job_counts counts;
    int32_t number; /* a signal; of ended: exit status, or minus the signal */
    bool error;     /* the line came from standard error */
    int64_t from, step;  /* of rolled; step of warning, too */
    int64_t offset;      /* of record: where in the file the data belong */
    const char *data;    /* ... in base64 */
    bool last;           /* ... and the file ends there */
    bool gone;           /* ... or: it was removed */
    int64_t id;          /* of a question */
    const pl_json *body; /* of cluster, answer and question */
    pl_json *json;       /* decoded from this, which holds the texts */
} pl_control_message;

/* The JSON object of a message; the caller's. */
pl_status pl_control_encode(const pl_control_message *message,
                            pl_json **out) PL_MUST_CHECK;
/* *take is the message's from here on, also on failure.  PL_PEER: not a
 * message, or a member is missing or wrong; PL_UNSUPPORTED: of another kind,
 * and not a question. */
pl_status pl_control_decode(pl_control_message *out,
                            pl_json *take) PL_MUST_CHECK;
void pl_control_message_close(pl_control_message *message); /* once decoded */

#endif
