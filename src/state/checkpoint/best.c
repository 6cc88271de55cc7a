/* best.json: its field table, the reader, and the writer, which replaces the
 * whole file. */
#include "state/checkpoint/best.h"

#include "base/file/file.h"
#include "base/mem.h"
#include "state/manifest.h"

#include <string.h>

#define BEST_NAME      "best.json"
#define BEST_BYTES_MAX 4096

static const pl_field rows[] = {
    { "step", PL_FIELD_INT(pl_best, step), .most = PL_MANIFEST_STEP_MAX },
    { "test_loss", PL_FIELD_REAL(pl_best, test_loss), .or_null = true },
    { "test_accuracy", PL_FIELD_REAL(pl_best, test_accuracy), .or_null = true },
};
const pl_fields pl_best_fields = PL_FIELDS(pl_best, rows);

pl_status pl_best_read(pl_best *out, const char *checkpoints)
{
    char *path;
    pl_json *json = NULL;
    PL_TRY(pl_file_join(&path, checkpoints, BEST_NAME));
    pl_status status = pl_json_read_file(&json, path, BEST_BYTES_MAX);
    if (status == PL_OK) {
        status = pl_fields_read(&pl_best_fields, json, out);
        if (status != PL_OK)
            status = pl_context(status, "%s", path);
    }
    pl_json_free(json);
    pl_mem_free(path);
    return status;
}

pl_status pl_best_write(const pl_best *best, const char *checkpoints)
{
    char *path = NULL, *text = NULL;
    pl_status status;
    PL_TRY_OUT(status, pl_file_join(&path, checkpoints, BEST_NAME));
    PL_TRY_OUT(status, pl_fields_text(&pl_best_fields, best, 2, &text));
    status = pl_file_replace(path, text, strlen(text));
out:
    pl_mem_free(path);
    pl_mem_free(text);
    return status;
}
