/* child.h - one process that a supervisor starts, and its end.
 *
 * The process dies with the thread that started it, however that ends.  Its
 * standard input is empty or a pipe, its standard error is appended to a log or
 * goes to a pipe, and it ignores SIGINT, which a terminal sends to all
 * processes at once: only the starting process acts on it.
 *
 * Threads: start from a thread that outlives the process. */
#ifndef PL_JOB_SUPERVISE_CHILD_H
#define PL_JOB_SUPERVISE_CHILD_H

#include "paceline/base.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define PL_CHILD_NO_EXEC 127 /* exit status when the program did not start */

typedef struct pl_child_opts {
    const char *program; /* required: its file */
    char *const *argv;   /* required, NULL at the end */
    const char *log;     /* created, or appended to; NULL: `err` is used */
    const char *mark;    /* a line for the log; NULL: none */
    int control;         /* descriptor that stays open in the process, with the
                            same number; 0: none */
    bool keep_stdout;    /* otherwise its output goes to `out` or is dropped */
    int in, out, err;    /* its standard files; 0: not given */
    bool search;         /* the program may be a name, looked for in PATH */
    char *const *environment; /* default: this process's */
} pl_child_opts;

/* *log_from is the place in the log where the new process begins. */
pl_status pl_child_start(pid_t *out, int64_t *log_from,
                         const pl_child_opts *opts) PL_MUST_CHECK;

/* "was killed by signal 9 (Killed)", "ended with exit status 1"; `ended` as
 * waitpid returns it. */
void pl_child_how(int ended, char *text, size_t room);

/* Whether it is stopped (SIGSTOP); false when unknown. */
bool pl_child_stopped(pid_t pid);

/* The last `lines` lines of the log after `from`, without the last newline; ""
 * when there are none. */
void pl_child_last_lines(const char *log, int64_t from, int lines, char *text,
                         size_t room);

#endif
