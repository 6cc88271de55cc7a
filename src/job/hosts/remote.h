/* remote.h - a launcher's view of one host: the connection to its agent.
 *
 * A child of the launcher, ssh or srun, starts the agent there and carries
 * what both say.  What that child itself complains about is kept: it says why
 * a host does not answer.
 *
 * Threads: one, which stays: the child dies with it. */
#ifndef PL_JOB_HOSTS_REMOTE_H
#define PL_JOB_HOSTS_REMOTE_H

#include "job/hosts/agent_channel.h"
#include "job/supervise/messages.h"

#include <sys/types.h>

#define PL_REMOTE_WORDS 1024

typedef struct pl_remote {
    const char *host; /* borrowed */
    pid_t pid;        /* of ssh; 0: it has ended */
    int ended;        /* ... as waitpid gives it */
    pl_agent_channel channel;
    int err;                      /* what ssh says; -1: closed */
    char words[PL_REMOTE_WORDS];  /* the last line of it */
    bool hello;                   /* the agent is there */
    bool closed;                  /* and is not any more */
    int64_t heard_ns, said_ns;    /* its last message, our last heartbeat */
    int64_t next_id, answered_id; /* of questions */
    pl_json *answer;              /* to the last question; NULL: none yet */
} pl_remote;

/* Takes what an agent says of its tasks. */
typedef void pl_remote_hear(void *context, const pl_control_message *message);

/* `argv` is the command that ends in the agent. */
pl_status pl_remote_init(pl_remote *remote, const char *host,
                         char *const *argv) PL_MUST_CHECK;
/* Close the agent's input, so that it begins to end. */
void pl_remote_leave(pl_remote *remote);
/* Closes the agent's input, which ends it and its tasks there, and ends the
 * child; a zeroed one is not. */
void pl_remote_close(pl_remote *remote);

/* Ask a question (its id is set here); *take is taken, also on failure.  The
 * answer comes into remote->answer. */
pl_status pl_remote_ask(pl_remote *remote, pl_json *take) PL_MUST_CHECK;
/* Say something that has no answer. */
pl_status pl_remote_say(pl_remote *remote,
                        const pl_control_message *message) PL_MUST_CHECK;

/* Take what has come, send a heartbeat when it is due; does not wait.
 * PL_CLOSED, with the reason as far as it is known, when the agent is gone;
 * PL_PEER when another version or another program is there. */
pl_status pl_remote_turn(pl_remote *remote, pl_remote_hear *hear,
                         void *context) PL_MUST_CHECK;

/* The answer to the last question without its "error"; PL_AGAIN: not yet, and
 * PL_PEER with the agent's own words when it could not. */
pl_status pl_remote_answer(const pl_remote *remote,
                           const pl_json **out) PL_MUST_CHECK;

/* Ms since the agent last said anything. */
int64_t pl_remote_silent_ms(const pl_remote *remote);

/* Wait a moment until one of them may have something. */
void pl_remotes_wait(pl_remote *const *remotes, int count, int64_t ms);

/* How to reach a host: the words before and behind its name. */
typedef struct pl_reach {
    const char *ssh;     /* "ssh -p 2222"; NULL: srun */
    const char *program; /* required: the agent's file there */
    bool srun;
} pl_reach;

/* The command that starts the agent there; pl_reach_free. */
pl_status pl_reach_command(char ***out, const pl_reach *reach,
                           const char *host) PL_MUST_CHECK;
/* ... or runs `command` by the host's shell. */
pl_status pl_reach_shell(char ***out, const pl_reach *reach, const char *host,
                         const char *command) PL_MUST_CHECK;
void pl_reach_free(char **command); /* NULL is fine */

#endif
