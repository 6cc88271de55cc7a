#include "fuzz/fuzz.h"

#include "app/sweep/state.h"
#include "base/mem.h"
#include "base/record/run_record.h"
#include "base/record/summary.h"
#include "matmul/report.h"
#include "observe/runs/profile.h"
#include "support/fields.h"

#include <string.h>

/* What a table reads it writes, and what it wrote it reads as the same. */
static void read_fields(const pl_fields *fields, void *of, const pl_json *json)
{
    char *once = NULL, *twice = NULL;
    pl_json *again = NULL;
    if (pl_fields_read(fields, json, of) != PL_OK)
        return;
    if (pl_fields_text(fields, of, 0, &once) != PL_OK)
        __builtin_trap();
    pl_fields_close(fields, of);
    if (pl_json_parse(&again, once, strlen(once), "again") != PL_OK ||
        pl_fields_read(fields, again, of) != PL_OK ||
        pl_fields_text(fields, of, 0, &twice) != PL_OK ||
        strcmp(once, twice) != 0)
        __builtin_trap();
    pl_fields_close(fields, of);
    pl_json_free(again);
    pl_mem_free(twice);
    pl_mem_free(once);
}

/* A trace adds up, also twice, and merges with itself, or is refused. */
static void read_trace(pl_json *json)
{
    pl_profile *profile;
    pl_json *traces[] = { json, json }, *merged;
    if (pl_profile_new(&profile) != PL_OK)
        return;
    for (int i = 0; i < 2; i++)
        if (pl_profile_add(profile, json, "input") == PL_OK &&
            pl_profile_dropped(profile) < 0)
            __builtin_trap();
    if (pl_profile_merge(traces, 2, &merged) == PL_OK)
        pl_json_free(merged);
    pl_profile_free(profile);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    pl_json *json = NULL;
    sample s;
    pl_summary summary;
    pl_run_record run;
    pl_job_reports reports;
    pl_run_event event;
    pl_sweep_file sweep;
    pl_matmul_result product;
    if (pl_json_parse(&json, (const char *)data, bytes, "input") != PL_OK)
        return 0;
    read_fields(&sample_fields, &s, json);
    read_fields(&pl_summary_fields, &summary, json);
    read_fields(&pl_run_record_fields, &run, json);
    read_fields(&pl_job_reports_fields, &reports, json);
    read_fields(&pl_run_event_fields, &event, json);
    read_fields(&pl_sweep_file_fields, &sweep, json);
    read_fields(&pl_matmul_result_fields, &product, json);
    read_trace(json);
    pl_json_free(json);
    return 0;
}
