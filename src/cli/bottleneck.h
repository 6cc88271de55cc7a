/* bottleneck.h - what held a run up, in words.
 *
 * From where the time of its workers went: computing, sending, reading data,
 * or waiting, and then for whom.
 *
 * Threads: one. */
#ifndef PL_CLI_BOTTLENECK_H
#define PL_CLI_BOTTLENECK_H

#include "base/json.h"

/* Put "bottleneck" into a summary that has its per_worker rows: {what, share,
 * text}, with "worker" where one is waited for; null when there was no time
 * to speak of. */
pl_status pl_bottleneck_put(pl_json *summary) PL_MUST_CHECK;

#endif
