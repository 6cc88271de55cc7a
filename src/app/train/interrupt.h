/* interrupt.h - Ctrl-C as a flag that loops check.
 *
 * The first SIGINT, SIGTERM or SIGHUP sets the flag; the second ends the
 * process at once.  A signal that was ignored when the process started stays
 * ignored: nohup does that with SIGHUP, a supervisor with SIGINT for its tasks,
 * as the terminal sends it to all processes and only the supervisor should act
 * on it.
 *
 * While a job runs, the live page can also set the flag through the socket of
 * the run folder (job/stop/stop.h).
 *
 * Threads: catch and listen from one; the flag is read from any. */
#ifndef PL_APP_TRAIN_INTERRUPT_H
#define PL_APP_TRAIN_INTERRUPT_H

#include "job/stop/stop.h"

#include <stdatomic.h>
#include <stdbool.h>

/* Start catching signals; returns the process's flag, false until one
 * arrives. */
atomic_bool *pl_interrupt_catch(void);

/* For a process that must end others before itself: from now on the second
 * signal sets this flag, and only the third ends the process. */
atomic_bool *pl_interrupt_hurry(void);

/* Let the flag, or another one, be set by the socket of the run folder, which
 * exists until pl_stop_free.  `keep`: this may be a task of a job whose starter
 * listens there.  NULL if there is no such socket: the job continues without
 * it. */
pl_stop *pl_interrupt_listen(const char *run, atomic_bool *flag, bool keep);

#endif
