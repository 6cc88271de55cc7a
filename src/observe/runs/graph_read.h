/* graph_read.h - the graph of a run's model, as recorded by its chief.
 *
 * Threads: any. */
#ifndef PL_OBSERVE_RUNS_GRAPH_READ_H
#define PL_OBSERVE_RUNS_GRAPH_READ_H

#include "base/buffer.h"

/* Append the nodes of an event file's first graph as a JSON list, [[name,
 * operator, device, [sizes], [names of inputs]], ...].  PL_NOTFOUND: not in the
 * whole records; PL_FORMAT: it is damaged. */
pl_status pl_graph_read(const uint8_t *data, size_t bytes,
                        pl_buffer *out) PL_MUST_CHECK;

/* The same for a run folder, from the beginning of its chief's event files. */
pl_status pl_graph_of_run(const char *run, pl_buffer *out) PL_MUST_CHECK;

#endif
