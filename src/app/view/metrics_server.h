/* metrics_server.h - the metrics of a job for monitoring systems, while it goes
 * on (--metrics).
 *
 * The process that has the run folder serves what its tasks recorded there; no
 * task waits for it.
 *
 * Threads: it has its own; the functions are called from one. */
#ifndef PL_APP_VIEW_METRICS_SERVER_H
#define PL_APP_VIEW_METRICS_SERVER_H

#include "app/options/options.h"

typedef struct pl_metrics_server pl_metrics_server;

/* Serve the run in the folder `run`; *out is NULL without --metrics.  PL_USAGE
 * when the address or the token is no good. */
pl_status pl_metrics_server_start(pl_metrics_server **out,
                                  const pl_train_options *train,
                                  const char *run) PL_MUST_CHECK;
void pl_metrics_server_stop(pl_metrics_server *server); /* NULL is fine */

#endif
