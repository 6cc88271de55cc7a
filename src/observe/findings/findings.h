/* findings.h - what runs show, in words: sentences computed from their flags
 * and results.
 *
 * Seventeen rules, each silent when the runs do not carry it (docs/sweeps.md
 * has them for the reader):
 *
 *   target    the fastest run to --stop-loss, and how many did not meet it
 *   targets   how steps and time to it go with the batch
 *   way       what more workers change on the way to it: steps and time
 *   speed     what more workers bring: speed-up and efficiency
 *   batch     how examples/s grow with the batch, and where they cease to
 *   doubts    that the five above rest on runs which are over at once, or
 *             whose cores other processes had
 *   memory    how it grows with the batch and the workers
 *   accuracy  how test accuracy goes with each flag that has numbers
 *   averaging why it falls with the workers where their gradients are averaged
 *   pairs     what each value of a flag of words changes, as async against sync
 *             or summed gradients against averaged ones, all other flags equal
 *   waiting   how long workers wait in sync and in async
 *   shares    that workers which do not wait share the steps unevenly
 *   traffic   what dense traffic costs a sparse model, or would have cost
 *   faults    tasks that were lost, and what was undone
 *   published how far results are from published ones
 *   spread    differences that repetitions have by themselves are called so
 *   limit     what limited the runs
 *
 * Pure: no input, no output, no clock; but for that about operators.
 *
 * Threads: any. */
#ifndef PL_OBSERVE_FINDINGS_FINDINGS_H
#define PL_OBSERVE_FINDINGS_FINDINGS_H

#include "base/buffer.h"
#include "observe/runs/record.h"

/* Append sentences about the runs of one experiment, a line each. */
pl_status pl_findings(const pl_records *part, pl_buffer *out) PL_MUST_CHECK;

/* The same about the operators of runs that were traced, of up to four runs:
 * reads their traces. */
pl_status pl_findings_operators(const pl_records *part,
                                pl_buffer *out) PL_MUST_CHECK;

#endif
