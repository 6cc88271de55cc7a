/* next.c - decides what to suggest after a run: only commands that work with
 * that run. */
#include "app/view/next.h"

#include "app/run/run_folder.h"
#include "base/mem.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* An interrupted run continues with its settings; a finished one needs a
 * greater length. */
static void print_resume(const char *program, const pl_options *options,
                         const pl_summary *summary, const char *run)
{
    const pl_train_options *train = &options->train;
    bool steps = train->steps > 0;
    if (train->checkpoint_every.unit == PL_EVERY_NEVER)
        return;
    if (summary->stopped_by != NULL &&
        strcmp(summary->stopped_by, "interrupt") == 0) {
        printf("      continue  %s train %s --run %s --resume\n", program,
               options->model->name, run);
        return;
    }
    printf("      continue  %s train %s --run %s --resume --%s %lld\n", program,
           options->model->name, run, steps ? "steps" : "epochs",
           2 * (long long)(steps ? train->steps : train->epochs));
}

void pl_next_print(const pl_options *options, const pl_summary *summary)
{
    char *run;
    const char *program = program_invocation_short_name;
    if (options->train.quiet || summary->run == NULL || !isatty(STDOUT_FILENO))
        return;
    if (pl_run_folder_word(summary->run, &run) != PL_OK)
        return;
    printf("\nnext  look      %s page %s\n", program, run);
    print_resume(program, options, summary, run);
    printf("      compare   %s compare %s OTHER_RUN\n", program, run);
    pl_mem_free(run);
}
