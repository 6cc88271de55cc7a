/* agreed.c - the settings that all tasks of a job must share: the model and
 * every flag with that trait. */
#include "app/train/trainer.h"

pl_status pl_trainer_settings(const pl_options *options, pl_json **out)
{
    pl_json *flags = NULL, *settings = NULL;
    const pl_json *value;
    const char *key, *text;
    void *walk = NULL;
    pl_status status;
    PL_TRY_OUT(status, pl_options_record(options, PL_OPTIONS_AGREED, &flags));
    PL_TRY_OUT(status, pl_json_new_object(&settings));
    /* Another model explains all other differences, so it comes first. */
    PL_TRY_OUT(status,
               pl_json_set_text(settings, "model", options->model->name));
    while (pl_json_next(flags, &walk, &key, &value)) {
        PL_TRY_OUT(status, pl_json_as_text(value, key, &text));
        PL_TRY_OUT(status, pl_json_set_text(settings, key, text));
    }
    *out = settings;
    settings = NULL;
out:
    pl_json_free(flags);
    pl_json_free(settings);
    return status;
}
