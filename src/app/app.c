/* app.c - finds a model by name: the user's own first, then the built-in ones.
 */
#include "app/app.h"

#include "base/error.h"
#include "base/param/param.h"
#include "nn/model.h"

#include <string.h>

#define MAX_MODELS 32

void pl_app_models(const pl_app *app, const pl_model **out, int room)
{
    int count = 0;
    if (app->mine != NULL)
        out[count++] = app->mine;
    for (const pl_model *const *m = pl_model_list();
         *m != NULL && count < room - 1; m++)
        out[count++] = *m;
    out[count] = NULL;
}

pl_status pl_app_model(const pl_app *app, const char *name,
                       const pl_model **out)
{
    const pl_model *models[MAX_MODELS];
    const char *names[MAX_MODELS];
    int count = 0;
    pl_app_models(app, models, MAX_MODELS);
    for (; models[count] != NULL; count++) {
        names[count] = models[count]->name;
        if (strcmp(names[count], name) == 0) {
            *out = models[count];
            return PL_OK;
        }
    }
    names[count] = NULL;
    const char *near = pl_param_nearest(name, names);
    return PL_FAIL(PL_USAGE, "unknown model \"%s\"%s%s%s", name,
                   near != NULL ? "; did you mean " : "",
                   near != NULL ? near : "; `models` lists what there is",
                   near != NULL ? "?" : "");
}
