/* mode.h - how gradients become updates: one table for each --mode.
 *
 * sync   all workers' gradients of a step are one update (sync.c)
 * async  each gradient is an update of its own (async.c)
 * ssp    likewise, and a worker may lead the slowest by --staleness steps
 *        (ssp.c)
 *
 * The core only calls the table.
 *
 * Threads: as the core. */
#ifndef PL_SYNC_PS_MODES_MODE_H
#define PL_SYNC_PS_MODES_MODE_H

#include "sync/ps/core/core_priv.h"

struct pl_ps_mode_ops {
    const char *name;
    /* All servers make the same steps: the parameters that a worker uses belong
     * to one step, and a lost worker delays the others. */
    bool lock_step;

    /* A push begins, before its data is read.  True: it needs none, and is
     * answered or waits. */
    bool (*begin_push)(pl_ps_core *core, pl_member *member);
    /* All of a push has arrived, and is finite. */
    void (*gradient_arrived)(pl_ps_core *core, pl_member *member);
    /* A complete push waits: answer it, if possible. */
    void (*release_push)(pl_ps_core *core, pl_member *member);
    /* Whether this worker may make one more gradient.  *flags gets
     * PL_ANSWER_STOP when none is left to make. */
    bool (*may_go_on)(pl_ps_core *core, pl_member *member, unsigned *flags);
    /* Whether no worker changes the parameters until it is answered. */
    bool (*all_wait)(const pl_ps_core *core);
    /* Make the update that waits until the parameters may change. */
    void (*retry)(pl_ps_core *core);
    /* Server 0: there may be enough gradients for a step.  Optional; default:
     * nothing. */
    void (*try_step)(pl_ps_core *core);

    /* The exchange with server 0: make a HAVE, receive it at server 0, receive
     * the APPLY. */
    pl_ps_have (*have)(const pl_ps_core *core, int32_t worker);
    void (*on_have)(pl_ps_core *core, const pl_member *from,
                    const pl_ps_have *have);
    void (*on_apply)(pl_ps_core *core, const pl_message *message);

    /* Optional, default: nothing.  A worker joins: its requests up to this
     * one will never be completed. */
    void (*void_pushes)(pl_ps_core *core, pl_member *member, uint64_t last);
    /* Optional, default: no.  The gradient of this worker was settled: whether
     * others that waited for the slowest worker may continue. */
    bool (*slowest_moved)(pl_ps_core *core, const pl_member *member);
    /* Optional, default: nothing.  A worker that the job continued without is
     * back. */
    void (*catch_up)(pl_ps_core *core, pl_member *member);
};

extern const pl_ps_mode_ops pl_ps_mode_sync, pl_ps_mode_async, pl_ps_mode_ssp;
const pl_ps_mode_ops *pl_ps_mode_of(pl_ps_mode mode);

/* async.c, for ssp: everything except when a worker may continue. */
bool pl_async_begin_push(pl_ps_core *core, pl_member *member);
void pl_async_gradient_arrived(pl_ps_core *core, pl_member *member);
void pl_async_release_push(pl_ps_core *core, pl_member *member);
bool pl_async_all_wait(const pl_ps_core *core);
void pl_async_retry(pl_ps_core *core);
pl_ps_have pl_async_have(const pl_ps_core *core, int32_t worker);
void pl_async_on_have(pl_ps_core *core, const pl_member *from,
                      const pl_ps_have *have);
void pl_async_on_apply(pl_ps_core *core, const pl_message *message);
void pl_async_void_pushes(pl_ps_core *core, pl_member *member, uint64_t last);
/* The part of may_go_on that ssp shares: true when *may is the decision. */
bool pl_async_is_decided(pl_ps_core *core, const pl_member *member,
                         unsigned *flags, bool *may);
/* Grant one of the gradients that --steps and the next test allow; false: none
 * is left.  `past_test`: the chief waits and does not test. */
bool pl_async_grant(pl_ps_core *core, pl_member *member, bool past_test);

#endif
