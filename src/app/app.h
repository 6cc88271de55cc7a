/* app.h - the program that a command works for: its name and its models.
 *
 * Threads: any; nothing here changes after the start. */
#ifndef PL_APP_APP_H
#define PL_APP_APP_H

#include "paceline/nn.h"

typedef struct pl_app {
    const char *program;  /* argv[0]'s last part, for messages */
    const pl_model *mine; /* the user's model, or NULL */
    int *exit_status;     /* of a command that went well; 0 unless set */
} pl_app;

/* PL_USAGE for an unknown one, with the nearest. */
pl_status pl_app_model(const pl_app *app, const char *name,
                       const pl_model **out) PL_MUST_CHECK;
/* All models: the user's first; at most `room`, NULL-terminated. */
void pl_app_models(const pl_app *app, const pl_model **out, int room);

#endif
