/* bottleneck.h - what held a run up, in words.
 *
 * From where the time of its workers went: computing, sending, reading data,
 * or waiting, and then for whom.
 *
 * Threads: one. */
#ifndef PL_APP_RUN_BOTTLENECK_H
#define PL_APP_RUN_BOTTLENECK_H

#include "base/record/summary.h"

/* Fill `bottleneck` of a summary that has its strategy, mode and rows; it has
 * none when there was no time to speak of.  `cores` are those of the chief's
 * host; 0: not known. */
pl_status pl_bottleneck_find(pl_summary *summary, int32_t cores) PL_MUST_CHECK;

#endif
