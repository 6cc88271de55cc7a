/* place.h - where a parameter server may read and write checkpoints.
 *
 * The chief says when to save and to load, and which checkpoint; not where on
 * the server's disk.  A server that was given a run folder uses that one; its
 * `checkpoints` may be a symbolic link of this user.  A server that was not
 * takes the chief's folder once, if it is below the folder it was started in or
 * holds the run.json of this job, written by this user; and there it replaces
 * nothing that is complete, and removes only what it has written itself.
 *
 * Threads: any. */
#ifndef PL_STATE_PLACE_H
#define PL_STATE_PLACE_H

#include "paceline/base.h"

typedef struct pl_place {
    const char *run;    /* the run folder... */
    const char *within; /* ... or, NULL: one below this; both NULL: anywhere,
                           for a process that was not told by another */
} pl_place;

/* The folder of checkpoints, for pl_mem_free; `told` is the chief's. */
pl_status pl_place_checkpoints(char **out, const pl_place *place,
                               const char *told) PL_MUST_CHECK;

/* Before anything is read or written: are the folder of checkpoints and
 * `name`, the checkpoint in it, where they may be, also after all symbolic
 * links?  PL_NOTFOUND: they are not there; PL_USAGE: they are elsewhere. */
pl_status pl_place_check(const pl_place *place, const char *checkpoints,
                         const char *name) PL_MUST_CHECK;

#endif
