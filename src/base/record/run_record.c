/* The field table of run.json, and the one reader of the file.
 *
 * The format is checked before the fields: a newer version may have others. */
#include "base/record/run_record.h"

#include "base/file/file.h"
#include "base/mem.h"

#define RUN_BYTES_MAX ((size_t)1 << 20)

static const pl_field size_rows[] = {
    { NULL, PL_FIELD_INT(pl_run_size, size), .least = 1, .most = INT64_MAX },
};
static const pl_fields size_fields = PL_FIELDS(pl_run_size, size_rows);

#define MAYBE .when = PL_WHEN_KNOWN, .or_null = true

static const pl_field machine_rows[] = {
    { "host", PL_FIELD_TEXT(pl_run_machine, host), MAYBE },
    { "cores", PL_FIELD_INT(pl_run_machine, cores), MAYBE },
    { "kernels", PL_FIELD_TEXT(pl_run_machine, kernels), MAYBE },
};
static const pl_fields machine_fields = PL_FIELDS(pl_run_machine, machine_rows);

static const pl_field rows[] = {
    { "format", PL_FIELD_INT(pl_run_record, format), .least = 1,
      .most = INT64_MAX },
    { "paceline", PL_FIELD_TEXT(pl_run_record, paceline), MAYBE },
    { "model", PL_FIELD_TEXT(pl_run_record, model) },
    { "started", PL_FIELD_TEXT(pl_run_record, started), MAYBE },
    { "job", PL_FIELD_HEX(pl_run_record, job), .when = PL_WHEN_SET },
    { "args", PL_FIELD_ANY_OBJECT(pl_run_record, args) },
    { "example",
      PL_FIELD_LIST(pl_run_record, example, example_rank, &size_fields),
      .when = PL_WHEN_SET, .least = 1, .most = PL_RUN_SIZES_MAX },
    { "numbering", PL_FIELD_INT(pl_run_record, numbering), .when = PL_WHEN_SET,
      .most = UINT32_MAX },
    { "input", PL_FIELD_ANY_OBJECT(pl_run_record, input), .when = PL_WHEN_SET },
    { "classes", PL_FIELD_INT(pl_run_record, classes), .when = PL_WHEN_KNOWN },
    { "end_step", PL_FIELD_INT(pl_run_record, end_step), .when = PL_WHEN_SET },
    { "machine", PL_FIELD_OBJECT(pl_run_record, machine, &machine_fields),
      PL_FIELD_GIVEN(pl_run_record, has_machine) },
};
const pl_fields pl_run_record_fields = PL_FIELDS(pl_run_record, rows);

static pl_status read_json(pl_run_record *out, pl_json *json, const char *file)
{
    int64_t format;
    pl_status status = pl_json_get_int(json, "format", 1, INT64_MAX, &format);
    if (status == PL_OK && format > PL_RUN_FORMAT)
        return PL_FAIL(PL_UNSUPPORTED,
                       "%s was written by a newer paceline (format %lld)", file,
                       (long long)format);
    if (status == PL_OK)
        status = pl_fields_read(&pl_run_record_fields, json, out);
    return status == PL_OK ? PL_OK : pl_context(status, "%s", file);
}

pl_status pl_run_record_read(pl_run_record *out, const char *folder)
{
    char *file;
    pl_json *json = NULL;
    PL_TRY(pl_file_join(&file, folder, "run.json"));
    pl_status status = pl_json_read_file(&json, file, RUN_BYTES_MAX);
    if (status == PL_OK)
        status = read_json(out, json, file);
    pl_mem_free(file);
    if (status != PL_OK) {
        pl_json_free(json);
        return pl_context(status, "%s is not a run folder", folder);
    }
    out->own_json = json;
    return PL_OK;
}

void pl_run_record_close(pl_run_record *run)
{
    pl_json *json = run->own_json;
    pl_fields_close(&pl_run_record_fields, run);
    pl_json_free(json);
}
