/* store.h - a server's part of the parameters: how requests about them arrive,
 * and how updates are applied.  One table for each kind of parameters.
 *
 * dense  gradients and parameters travel whole, cut into pieces (dense.c)
 * keyed  sparse parameters: workers name the keys they need (keyed.c)
 *
 * The core calls the table and knows no kind.
 *
 * Threads: as the core. */
#ifndef PL_SYNC_PS_STORE_STORE_H
#define PL_SYNC_PS_STORE_STORE_H

#include "sync/ps/core/core_priv.h"

struct pl_ps_store_ops {
    const char *name;

    /* Optional, default: the core has all that is needed. */
    pl_status (*open)(pl_ps_core *core);
    void (*close)(pl_ps_core *core);

    /* The chief begins to give the first parameters. */
    void (*begin_init)(pl_ps_core *core, pl_member *member,
                       const pl_message *message);
    /* Optional, default: all are pulled.  PL_FORMAT: what is asked for cannot
     * be. */
    pl_status (*begin_pull)(pl_ps_core *core, const pl_member *member,
                            const pl_message *message);
    /* A worker that may push begins to. */
    void (*begin_push)(pl_ps_core *core, pl_member *member,
                       const pl_message *message);
    /* More data of the request that is arriving. */
    void (*take)(pl_ps_core *core, pl_member *member,
                 const pl_ps_request *request, const pl_message *message);

    /* Parameters are the answer to the request at hand: send them, from the
     * first, or what was not acknowledged. */
    void (*answer)(pl_ps_core *core, pl_member *member);
    void (*answer_again)(pl_ps_core *core, pl_member *member);
    /* Optional, default: answers are not acknowledged. */
    void (*acked)(pl_ps_core *core, pl_member *member, const pl_ps_ack *ack);

    /* Keep the gradient at hand, which its sender may lose or change. */
    pl_status (*keep)(pl_ps_core *core, pl_member *member);
    /* Optional, default: nothing.  A task rejoins: what it asked for is
     * no more; what it pushed stays. */
    void (*forget)(pl_ps_core *core, const pl_member *member);
    bool (*is_finite)(const pl_ps_core *core, const pl_member *member);
    /* What the gradient of `member`, or, NULL, of all workers, changes is about
     * to change: may it? */
    bool (*touch)(const pl_ps_core *core, const pl_member *member);
    /* Combine the gradients of these workers in this order and apply them,
     * after pl_optim_begin. */
    pl_status (*update)(pl_ps_core *core, const int32_t *workers,
                        int32_t count);
};

extern const pl_ps_store_ops pl_ps_store_dense, pl_ps_store_keyed;

#endif
