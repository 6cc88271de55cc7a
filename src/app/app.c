/* app.c - finds a model by name: the user's own first, then the built-in ones;
 * a name that ends in .onnx is a file. */
#include "app/app.h"

#include "base/error.h"
#include "base/file/file.h"
#include "base/mem.h"
#include "base/param/param.h"

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

static pl_status open_file(const pl_app *app, const pl_onnx_net_opts *opts,
                           const pl_model **out)
{
    pl_app_files *files = app->files;
    if (files->count == PL_APP_FILES)
        return PL_FAIL(PL_USAGE, "%s: more than %d models from files",
                       opts->path, PL_APP_FILES);
    PL_TRY(pl_onnx_net_new(&files->list[files->count], opts));
    *out = pl_onnx_net_model(files->list[files->count++]);
    return PL_OK;
}

void pl_app_files_close(pl_app_files *files)
{
    for (int i = 0; i < files->count; i++)
        pl_onnx_net_free(files->list[i]);
    files->count = 0;
}

pl_status pl_app_model_of_run(const pl_app *app, const char *run,
                              const char *name, const pl_model **out)
{
    char *path;
    if (!pl_onnx_is_file(name))
        return pl_app_model(app, name, out);
    PL_TRY(pl_file_join(&path, run, PL_MODEL_FILE));
    pl_status status = open_file(
        app,
        &(pl_onnx_net_opts) { .path = path, .name = name, .no_weights = true },
        out);
    pl_mem_free(path);
    return status;
}

pl_status pl_app_model(const pl_app *app, const char *name,
                       const pl_model **out)
{
    const pl_model *models[MAX_MODELS];
    const char *names[MAX_MODELS];
    int count = 0;
    if (pl_onnx_is_file(name))
        return open_file(app, &(pl_onnx_net_opts) { .path = name }, out);
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
                   near != NULL ? near : "; `models` lists the models",
                   near != NULL ? "?" : "");
}
