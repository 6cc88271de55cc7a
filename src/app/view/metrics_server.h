/* metrics_server.h - the metrics of a running job for monitoring systems
 * (--metrics).
 *
 * The process that owns the run folder serves what the tasks recorded there; no
 * task waits for it.
 *
 * Threads: it has its own; the functions are called from one. */
#ifndef PL_APP_VIEW_METRICS_SERVER_H
#define PL_APP_VIEW_METRICS_SERVER_H

#include "app/options/options.h"

typedef struct pl_metrics_server pl_metrics_server;

/* Serve the run in the folder `run`; *out is NULL without --metrics.  PL_USAGE
 * when the address or the token is not acceptable. */
pl_status pl_metrics_server_start(pl_metrics_server **out,
                                  const pl_train_options *train,
                                  const char *run) PL_MUST_CHECK;
void pl_metrics_server_stop(pl_metrics_server *server); /* NULL is fine */

#endif
