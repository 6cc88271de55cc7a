/* Converts the progress of a run to the "state" object of a manifest, and
 * back. */
#include "state/progress.h"

#include "base/log.h"

#include <string.h>

static pl_status fill_state(pl_json *state, const pl_progress *progress,
                            const char *kernels)
{
    char position[PL_POSITION_TEXT];
    pl_position_text(&progress->position, position);
    PL_TRY(pl_json_set_int(state, "examples", progress->examples));
    PL_TRY(pl_json_set_real(state, "seconds", progress->seconds));
    PL_TRY(pl_json_set_text(state, "position", position));
    PL_TRY(pl_json_set_text(state, "kernels", kernels));
    PL_TRY(pl_json_set_bool(state, "mixed", progress->mixed));
    if (progress->best_loss > 0) {
        PL_TRY(pl_json_set_real(state, "best_loss", progress->best_loss));
        PL_TRY(pl_json_set_int(state, "worse", progress->worse));
    }
    if (progress->bucket_bytes > 0)
        PL_TRY(pl_json_set_int(state, "bucket_bytes", progress->bucket_bytes));
    if (progress->link > 0)
        PL_TRY(pl_json_set_int(state, "link", progress->link));
    return PL_OK;
}

pl_status pl_progress_json(pl_json **out, const pl_progress *progress,
                           const char *kernels)
{
    pl_json *state;
    PL_TRY(pl_json_new_object(&state));
    pl_status status = fill_state(state, progress, kernels);
    if (status != PL_OK) {
        pl_json_free(state);
        return status;
    }
    *out = state;
    return PL_OK;
}

pl_status pl_progress_read(pl_progress *out, const pl_json *state,
                           const char *kernels)
{
    const char *position, *made_with;
    PL_TRY(pl_json_get_int(state, "examples", 0, INT64_MAX, &out->examples));
    PL_TRY(pl_json_get_real(state, "seconds", &out->seconds));
    PL_TRY(pl_json_get_text(state, "position", &position));
    PL_TRY(pl_json_get_text(state, "kernels", &made_with));
    PL_TRY(pl_json_get_bool(state, "mixed", &out->mixed));
    if (pl_json_has(state, "best_loss")) {
        PL_TRY(pl_json_get_real(state, "best_loss", &out->best_loss));
        PL_TRY(pl_json_get_int(state, "worse", 0, INT64_MAX, &out->worse));
    }
    if (pl_json_has(state, "bucket_bytes"))
        PL_TRY(pl_json_get_int(state, "bucket_bytes", 1, INT64_MAX,
                               &out->bucket_bytes));
    if (pl_json_has(state, "link"))
        PL_TRY(pl_json_get_int(state, "link", 1, INT32_MAX, &out->link));
    if (strcmp(made_with, kernels) != 0) {
        pl_log(PL_LOG_WARN,
               "the checkpoint was made with kernels %s, this run continues "
               "with %s: the result will differ in some bits from an "
               "uninterrupted run's",
               made_with, kernels);
        out->mixed = true;
    }
    return pl_position_parse(&out->position, position);
}
