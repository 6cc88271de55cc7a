/* ps_table.h - a server's part of sparse parameters: those who ask and push
 * name the keys.
 *
 * A worker's request brings the keys of a batch that it will compute soon; the
 * answer is their values.  The gradient of that batch comes later, in a
 * message that has its floats only: the server kept the keys, under the number
 * that the worker gave the list.  Where it has no such list it asks for the
 * message once more (PL_ACK_NEED), which then has these keys, too.
 *
 * So a request is one message, and the core sees it like one of a single
 * piece.  All parameters are keys, a bias as well as a table; but L1, L2 and
 * the rest of what optimizers do to sparse weights are the table's alone.
 *
 * Threads: as the core. */
#ifndef PL_SYNC_PS_STORE_TABLE_H
#define PL_SYNC_PS_STORE_TABLE_H

#include "sync/ps/core/core_priv.h"

pl_status pl_ps_table_new(pl_ps_table **out,
                          const pl_ps_core_opts *opts) PL_MUST_CHECK;
void pl_ps_table_free(pl_ps_table *table); /* NULL is fine */

/* A member begins anew: its lists are no more.  What it pushed stays. */
void pl_ps_table_forget(pl_ps_table *table, int32_t member);

/* Make the first parameters by a description; PL_FORMAT, PL_USAGE. */
pl_status pl_ps_table_fill(pl_ps_core *core,
                           const pl_message *message) PL_MUST_CHECK;

/* Take the keys or the range of a pull.  PL_FORMAT: they cannot be. */
pl_status pl_ps_table_pull(pl_ps_core *core, const pl_member *member,
                           const pl_ps_pull *pull,
                           const pl_message *message) PL_MUST_CHECK;
/* Take the keys that a push asks for, and look for those of its gradient.
 * PL_AGAIN, without a text: they are not here; PL_FORMAT: it cannot be. */
pl_status pl_ps_table_push(pl_ps_core *core, const pl_member *member,
                           const pl_ps_push *push,
                           const pl_message *message) PL_MUST_CHECK;
/* Then take the gradient itself: kept, unless it is applied at once. */
pl_status pl_ps_table_gradient(pl_ps_core *core, const pl_member *member,
                               const pl_ps_push *push,
                               const pl_message *message) PL_MUST_CHECK;
/* Keep what the sender may lose, or change. */
pl_status pl_ps_table_keep(pl_ps_core *core,
                           const pl_member *member) PL_MUST_CHECK;
/* The weights that this gradient changes, or, NULL, those of all workers that
 * wait, are about to change: may they? */
bool pl_ps_table_touch(const pl_ps_core *core, const pl_member *member);
bool pl_ps_table_finite(const pl_ps_core *core, int32_t worker);

/* Combine the gradients of these workers in this order and apply them, after
 * pl_optim_begin. */
pl_status pl_ps_table_update(pl_ps_core *core, const int32_t *workers,
                             int32_t count) PL_MUST_CHECK;

/* Send the answer to the request at hand, or send it again. */
void pl_ps_table_deliver(pl_ps_core *core, const pl_member *member);

#endif
