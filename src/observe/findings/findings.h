/* findings.h - findings about runs: sentences computed from their flags and
 * results.
 *
 * Seventeen rules, each silent if the runs do not support it (docs/sweeps.md
 * describes them for users):
 *
 *   target    the fastest run to --stop-loss, and how many did not meet it
 *   targets   how steps and time to it depend on the batch
 *   way       how more workers change the steps and time to it
 *   speed     speed-up and efficiency of more workers
 *   batch     how examples/s grow with the batch, and where they stop
 *   doubts    that the five above rest on runs that were too short, or
 *             whose cores other processes used
 *   memory    how it grows with the batch and the workers
 *   accuracy  how test accuracy depends on each numeric flag
 *   averaging why it falls with more workers if gradients are averaged
 *   pairs     what each value of a choice flag changes, such as async or sync,
 *             or summed or averaged gradients, all other flags equal
 *   waiting   how long workers wait in sync and in async
 *   shares    that workers that do not wait make uneven shares of the steps
 *   traffic   what dense traffic costs, or would cost, a sparse model
 *   faults    tasks that were lost, and what was undone
 *   published how far results are from published ones
 *   spread    differences within the spread of repetitions are marked
 *   limit     what limited the runs
 *
 * Pure: no input, no output, no clock; except for operators.
 *
 * Threads: any. */
#ifndef PL_OBSERVE_FINDINGS_FINDINGS_H
#define PL_OBSERVE_FINDINGS_FINDINGS_H

#include "base/buffer.h"
#include "observe/runs/record.h"

/* Append sentences about the runs of one experiment, one per line. */
pl_status pl_findings(const pl_records *part, pl_buffer *out) PL_MUST_CHECK;

/* The same about the operators of up to four traced runs: reads their
 * traces. */
pl_status pl_findings_operators(const pl_records *part,
                                pl_buffer *out) PL_MUST_CHECK;

#endif
