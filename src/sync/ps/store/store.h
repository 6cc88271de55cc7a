/* store.h - a server's partition of the parameters: how requests for them
 * arrive, and how updates are applied.  One table for each kind of parameters.
 *
 * dense  gradients and parameters travel whole, cut into pieces (dense.c)
 * keyed  sparse parameters: workers name the keys they need (keyed.c)
 *
 * The core only calls the table.
 *
 * Threads: as the core. */
#ifndef PL_SYNC_PS_STORE_STORE_H
#define PL_SYNC_PS_STORE_STORE_H

#include "sync/ps/core/core_priv.h"

struct pl_ps_store_ops {
    const char *name;

    /* Optional, default: nothing. */
    pl_status (*open)(pl_ps_core *core);
    void (*close)(pl_ps_core *core);

    /* The chief begins to send the first parameters. */
    void (*begin_init)(pl_ps_core *core, pl_member *member,
                       const pl_message *message);
    /* Optional, default: all are pulled.  PL_FORMAT: an invalid request. */
    pl_status (*begin_pull)(pl_ps_core *core, const pl_member *member,
                            const pl_message *message);
    /* A worker that may push begins a push. */
    void (*begin_push)(pl_ps_core *core, pl_member *member,
                       const pl_message *message);
    /* More data of the request that is arriving. */
    void (*take)(pl_ps_core *core, pl_member *member,
                 const pl_ps_request *request, const pl_message *message);

    /* Parameters are the answer to the current request: send all of them, or
     * those not acknowledged. */
    void (*answer)(pl_ps_core *core, pl_member *member);
    void (*answer_again)(pl_ps_core *core, pl_member *member);
    /* Optional, default: answers are not acknowledged. */
    void (*acked)(pl_ps_core *core, pl_member *member, const pl_ps_ack *ack);

    /* Copy the current gradient, which its sender may lose or change. */
    pl_status (*keep)(pl_ps_core *core, pl_member *member);
    /* Optional, default: nothing.  A task rejoins: discard its requests; its
     * gradient stays. */
    void (*forget)(pl_ps_core *core, const pl_member *member);
    bool (*is_finite)(const pl_ps_core *core, const pl_member *member);
    /* Whether the parameters may change that the gradient of `member`, or of
     * all workers if NULL, is about to change. */
    bool (*touch)(const pl_ps_core *core, const pl_member *member);
    /* Combine the gradients of these workers in this order and apply them,
     * after pl_optim_begin. */
    pl_status (*update)(pl_ps_core *core, const int32_t *workers,
                        int32_t count);
};

extern const pl_ps_store_ops pl_ps_store_dense, pl_ps_store_keyed;

#endif
