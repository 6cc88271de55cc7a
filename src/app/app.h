/* app.h - the program's name and its models, for all commands.
 *
 * Threads: one; models that were found may be used by any. */
#ifndef PL_APP_APP_H
#define PL_APP_APP_H

#include "nn/onnx/onnx_model.h"

#define PL_APP_FILES 8 /* models that one command may read from files */

/* Models that were read from files, freed when the program ends. */
typedef struct pl_app_files {
    pl_onnx_net *list[PL_APP_FILES];
    int count;
} pl_app_files;
void pl_app_files_close(pl_app_files *files);

typedef struct pl_app {
    const char *program;  /* argv[0]'s last part, for messages */
    const pl_model *mine; /* the program's own model, or NULL */
    pl_app_files *files;  /* required */
    int *exit_status;     /* of a successful command; 0 unless set */
} pl_app;

/* The model of this name, or in this file (FILE.onnx).  PL_USAGE for an unknown
 * one; the message suggests the nearest name. */
pl_status pl_app_model(const pl_app *app, const char *name,
                       const pl_model **out) PL_MUST_CHECK;
/* The model that the run in the folder was started with; a model from a file is
 * read from the copy in the folder. */
pl_status pl_app_model_of_run(const pl_app *app, const char *run,
                              const char *name,
                              const pl_model **out) PL_MUST_CHECK;
/* All models, own ones first; at most `room`, NULL-terminated. */
void pl_app_models(const pl_app *app, const pl_model **out, int room);

#endif
