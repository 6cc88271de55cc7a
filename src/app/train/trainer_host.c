/* trainer_host.c - connects a trainer to the terminal, whose signals end it and
 * where its summary is printed, or to the program that it runs in. */
#include "app/run/summary.h"
#include "app/train/interrupt.h"
#include "app/train/trainer.h"
#include "app/view/next.h"
#include "base/mem.h"

#include <string.h>

pl_status pl_trainer_print(const pl_options *options, const pl_summary *summary)
{
    char *text;
    if (!options->train.json) {
        pl_summary_print(summary, stdout);
        pl_next_print(options, summary);
        return PL_OK;
    }
    PL_TRY(pl_fields_text(&pl_summary_fields, summary, 0, &text));
    printf("%s\n", text);
    pl_mem_free(text);
    return PL_OK;
}

atomic_bool *pl_trainer_interrupt(const pl_trainer_opts *opts)
{
    return opts->host != NULL ? opts->host->interrupt : pl_interrupt_catch();
}

void pl_trainer_begun(const pl_trainer_opts *opts, pl_metrics *metrics,
                      int64_t end_step, int64_t epoch_steps)
{
    const pl_trainer_host *host = opts->host;
    if (host != NULL && host->begun != NULL)
        host->begun(host->context, metrics, end_step, epoch_steps);
}

void pl_trainer_done(const pl_trainer_opts *opts)
{
    if (opts->host != NULL && opts->host->done != NULL)
        opts->host->done(opts->host->context);
}

pl_status pl_trainer_initial(const pl_trainer_opts *opts, pl_params *params)
{
    const pl_trainer_host *host = opts->host;
    return host != NULL && host->initial != NULL
               ? host->initial(host->context, params)
               : PL_OK;
}

bool pl_trainer_starts_far(const pl_trainer_opts *opts)
{
    const char *own = opts->options->model->init;
    bool given = opts->host != NULL && opts->host->initial != NULL;
    return given ||
           strcmp(opts->options->train.init, own != NULL ? own : "glorot") != 0;
}

pl_status pl_trainer_show(const pl_trainer_opts *opts,
                          const pl_summary *summary)
{
    const pl_trainer_host *host = opts->host;
    return host != NULL ? host->result(host->context, summary)
                        : pl_trainer_print(opts->options, summary);
}
