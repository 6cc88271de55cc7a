/* interrupt.c - turns SIGINT, SIGTERM and SIGHUP into a flag, and a request at
 * the run folder's socket; the second signal ends the process. */
#include "app/train/interrupt.h"

#include "base/error.h"
#include "base/log.h"

#include <signal.h>
#include <stddef.h>
#include <unistd.h>

static atomic_bool interrupt;
static atomic_bool hurry;   /* a second signal was received */
static atomic_bool hurries; /* ... and is polled */

static void on_signal(int number)
{
    if (!atomic_exchange(&interrupt, true))
        return;
    if (!atomic_load(&hurries) || atomic_exchange(&hurry, true))
        _exit(128 + number);
}

static void catch_one(int number)
{
    struct sigaction action = { .sa_handler = on_signal }, before;
    sigemptyset(&action.sa_mask);
    sigaction(number, NULL, &before);
    if (before.sa_handler != SIG_IGN)
        sigaction(number, &action, NULL);
}

atomic_bool *pl_interrupt_catch(void)
{
    atomic_store(&interrupt, false);
    catch_one(SIGINT);
    catch_one(SIGTERM);
    catch_one(SIGHUP);
    catch_one(SIGUSR1); /* mpirun forwards it to its ranks */
    return &interrupt;
}

atomic_bool *pl_interrupt_hurry(void)
{
    atomic_store(&hurries, true);
    return &hurry;
}

pl_stop *pl_interrupt_listen(const char *run, atomic_bool *flag, bool keep)
{
    pl_stop *stop;
    if (flag == NULL)
        flag = &interrupt;
    if (pl_stop_listen(&stop, &(pl_stop_opts) { .run = run,
                                                .interrupt = flag,
                                                .keep = keep }) == PL_OK)
        return stop;
    pl_log(PL_LOG_DEBUG, "%s; the live page cannot stop this run",
           pl_error_message());
    return NULL;
}
