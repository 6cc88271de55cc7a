/* place.h - where a parameter server may read and write checkpoints.
 *
 * The chief decides when to save and load, and which checkpoint, but not where
 * on the server's disk.  A server that was given a run folder uses that one;
 * its `checkpoints` may be a symbolic link of this user.  A server without a
 * run folder adopts the chief's folder once, if it is below the folder where
 * the server was started or holds the run.json of this job, written by this
 * user.  There it never replaces a complete checkpoint, and removes only
 * checkpoints that it wrote itself.
 *
 * Threads: any. */
#ifndef PL_STATE_PLACE_H
#define PL_STATE_PLACE_H

#include "paceline/base.h"

typedef struct pl_place {
    const char *run;    /* the run folder... */
    const char *within; /* ... or, if NULL: one below this; both NULL: anywhere,
                           for a process that chose it itself */
} pl_place;

/* The folder of checkpoints, for pl_mem_free; `told` is the one the chief
 * named. */
pl_status pl_place_checkpoints(char **out, const pl_place *place,
                               const char *told) PL_MUST_CHECK;

/* Before anything is read or written: are the folder of checkpoints and `name`,
 * the checkpoint in it, in an allowed place, also after resolving symbolic
 * links?  PL_NOTFOUND: they do not exist; PL_USAGE: they are elsewhere. */
pl_status pl_place_check(const pl_place *place, const char *checkpoints,
                         const char *name) PL_MUST_CHECK;

#endif
