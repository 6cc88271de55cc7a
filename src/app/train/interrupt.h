/* interrupt.h - Ctrl-C as a flag that loops look at.
 *
 * The first SIGINT, SIGTERM or SIGHUP sets the flag; the second ends the
 * process at once.  A signal that was ignored when the process began stays
 * so: nohup does that with SIGHUP, a supervisor with its tasks' SIGINT, as
 * the terminal sends that to all and only the supervisor shall act on it.
 *
 * While a job goes on, the live page can set the flag, too: by the socket of
 * the run folder (job/stop/stop.h).
 *
 * Threads: catch and listen from one; the flag is read from any. */
#ifndef PL_APP_TRAIN_INTERRUPT_H
#define PL_APP_TRAIN_INTERRUPT_H

#include "job/stop/stop.h"

#include <stdatomic.h>
#include <stdbool.h>

/* Begin to catch; the flag is the process's, false until a signal comes. */
atomic_bool *pl_interrupt_catch(void);

/* For a process that must end others before itself: from now on the second
 * signal sets this flag, and only the third ends the process. */
atomic_bool *pl_interrupt_hurry(void);

/* Let the flag, or another one, be set by the socket of the run folder, which
 * exists until pl_stop_free.  `keep`: this may be a task of a job whose starter
 * listens there.  NULL where there is no such socket: the job goes on without.
 */
pl_stop *pl_interrupt_listen(const char *run, atomic_bool *flag, bool keep);

#endif
