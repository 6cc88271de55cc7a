/* interrupt.h - Ctrl-C as a flag that loops look at.
 *
 * The first SIGINT, SIGTERM or SIGHUP sets the flag; the second ends the
 * process at once.  A signal that was ignored when the process began stays
 * so: nohup does that with SIGHUP, a supervisor with its tasks' SIGINT, as
 * the terminal sends that to all and only the supervisor shall act on it.
 *
 * Threads: catch from one; the flag is read from any. */
#ifndef PL_APP_TRAIN_INTERRUPT_H
#define PL_APP_TRAIN_INTERRUPT_H

#include <stdatomic.h>
#include <stdbool.h>

/* Begin to catch; the flag is the process's, false until a signal comes. */
atomic_bool *pl_interrupt_catch(void);

/* For a process that must end others before itself: from now on the second
 * signal sets this flag, and only the third ends the process. */
atomic_bool *pl_interrupt_hurry(void);

#endif
