/* child.h - one process that a supervisor starts, and what is left of it.
 *
 * The process dies with the thread that started it, however that ends.  Its
 * standard input is empty or a pipe, its standard error is appended to a log
 * or goes to a pipe, and it ignores SIGINT, which a terminal sends to all
 * processes at once: only who started it acts on it.
 *
 * Threads: start from a thread that lives as long as the process shall. */
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
    const char *log;     /* made, or appended to; NULL: `err` is used */
    const char *mark;    /* a line for the log; NULL: none */
    int control;         /* stays open in the process, under this number; 0:
                            nothing does */
    bool keep_stdout;    /* else what it prints goes to `out` or is dropped */
    int in, out, err;    /* its standard files; 0: not given */
    bool search;         /* the program may be a name, looked for in PATH */
    char *const *environment; /* default: this process's */
} pl_child_opts;

/* *log_from is where in the log the new process begins. */
pl_status pl_child_start(pid_t *out, int64_t *log_from,
                         const pl_child_opts *opts) PL_MUST_CHECK;

/* "was killed by signal 9 (Killed)", "ended with exit status 1"; `ended` as
 * waitpid gives it. */
void pl_child_how(int ended, char *text, size_t room);

/* It is stopped (SIGSTOP), as Linux tells; false when that is not known. */
bool pl_child_stopped(pid_t pid);

/* The last `lines` lines of the log behind `from`, without the last newline;
 * "" when there are none. */
void pl_child_last_lines(const char *log, int64_t from, int lines, char *text,
                         size_t room);

#endif
