/* remote.h - a launcher's view of one host: the connection to its agent.
 *
 * A child of the launcher, ssh or srun, starts the agent and carries the
 * messages of both.  The error output of that child is kept: it shows why a
 * host does not answer.
 *
 * Threads: one, which must not end before the child: it dies with it. */
#ifndef PL_JOB_HOSTS_REMOTE_H
#define PL_JOB_HOSTS_REMOTE_H

#include "job/hosts/agent_channel.h"
#include "job/supervise/messages.h"

#include <sys/types.h>

#define PL_REMOTE_WORDS 1024

typedef struct pl_remote {
    const char *host; /* borrowed */
    pid_t pid;        /* of ssh; 0: it has ended */
    int ended;        /* ... as waitpid returns it */
    pl_agent_channel channel;
    int err;                      /* error output of ssh; -1: closed */
    char words[PL_REMOTE_WORDS];  /* its last line */
    bool hello;                   /* the agent is connected */
    bool closed;                  /* ... and has disconnected */
    int64_t heard_ns, said_ns;    /* times of its last message, our last
                                     heartbeat */
    int64_t next_id, answered_id; /* of questions */
    pl_json *answer;              /* to the last question; NULL: none yet */
} pl_remote;

/* Handles a message of an agent about its tasks. */
typedef void pl_remote_hear(void *context, const pl_control_message *message);

/* `argv` is the command that starts the agent. */
pl_status pl_remote_init(pl_remote *remote, const char *host,
                         char *const *argv) PL_MUST_CHECK;
/* Close the agent's input, which makes it end. */
void pl_remote_leave(pl_remote *remote);
/* Closes the agent's input, which ends it and its tasks, and ends the child;
 * must be initialized. */
void pl_remote_close(pl_remote *remote);

/* Send a question (its id is set here); takes ownership of *take, also on
 * failure.  The answer will be in remote->answer. */
pl_status pl_remote_ask(pl_remote *remote, pl_json *take) PL_MUST_CHECK;
/* Send a message that has no answer. */
pl_status pl_remote_say(pl_remote *remote,
                        const pl_control_message *message) PL_MUST_CHECK;

/* Handle received messages and send a heartbeat when it is due; never blocks.
 * PL_CLOSED, with the reason if known, when the agent is gone; PL_PEER when it
 * is another version or another program. */
pl_status pl_remote_turn(pl_remote *remote, pl_remote_hear *hear,
                         void *context) PL_MUST_CHECK;

/* The answer to the last question, without its "error"; PL_AGAIN: not yet;
 * PL_PEER with the agent's error message when it failed. */
pl_status pl_remote_answer(const pl_remote *remote,
                           const pl_json **out) PL_MUST_CHECK;

/* Milliseconds since the last message of the agent. */
int64_t pl_remote_silent_ms(const pl_remote *remote);

/* Wait briefly until one of them may have a message. */
void pl_remotes_wait(pl_remote *const *remotes, int count, int64_t ms);

/* How to reach a host: the command around its name. */
typedef struct pl_reach {
    const char *ssh;     /* "ssh -p 2222"; NULL: srun */
    const char *program; /* required: the agent's file there */
    bool srun;
} pl_reach;

/* The command that starts the agent there; to be freed by pl_reach_free. */
pl_status pl_reach_command(char ***out, const pl_reach *reach,
                           const char *host) PL_MUST_CHECK;
/* ... or that runs `command` in the host's shell. */
pl_status pl_reach_shell(char ***out, const pl_reach *reach, const char *host,
                         const char *command) PL_MUST_CHECK;
void pl_reach_free(char **command); /* may be NULL */

#endif
