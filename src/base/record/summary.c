/* The field table of summary.json, and the one reader of the file.
 *
 * Every field except the reason of the end may be missing: a summary of an
 * older version is shown with the fields it has. */
#include "base/record/summary.h"

#define SUMMARY_BYTES_MAX ((size_t)16 << 20)

static const pl_field cure_rows[] = {
    { "text", PL_FIELD_CHARS(pl_cure, text) },
    { "gain", PL_FIELD_REAL(pl_cure, gain) },
};
static const pl_fields cure_fields = PL_FIELDS(pl_cure, cure_rows);

static const pl_field bottleneck_rows[] = {
    { "what", PL_FIELD_CHARS(pl_bottleneck, what) },
    { "share", PL_FIELD_REAL(pl_bottleneck, share) },
    { "worker", PL_FIELD_INT(pl_bottleneck, worker), .when = PL_WHEN_SET,
      .or_null = true },
    { "task", PL_FIELD_CHARS(pl_bottleneck, task), .when = PL_WHEN_SET },
    { "host", PL_FIELD_CHARS(pl_bottleneck, host), .when = PL_WHEN_SET },
    { "spells", PL_FIELD_BOOL(pl_bottleneck, spells), .when = PL_WHEN_SET },
    { "cures", PL_FIELD_LIST(pl_bottleneck, cures, cure_count, &cure_fields),
      .when = PL_WHEN_SET, .most = PL_CURES_MAX },
    { "text", PL_FIELD_CHARS(pl_bottleneck, text) },
};
static const pl_fields bottleneck_fields =
    PL_FIELDS(pl_bottleneck, bottleneck_rows);

static const pl_field traffic_rows[] = {
    { "bytes_per_gradient",
      PL_FIELD_INT(pl_dense_traffic, bytes_per_gradient) },
    { "moved_per_gradient",
      PL_FIELD_INT(pl_dense_traffic, moved_per_gradient) },
    { "seconds_per_gradient",
      PL_FIELD_REAL(pl_dense_traffic, seconds_per_gradient),
      .when = PL_WHEN_KNOWN, .or_null = true },
    { "link_bytes_per_s", PL_FIELD_REAL(pl_dense_traffic, link_bytes_per_s),
      .when = PL_WHEN_KNOWN, .or_null = true },
    { "link", PL_FIELD_CHARS(pl_dense_traffic, link) },
};
static const pl_fields traffic_fields =
    PL_FIELDS(pl_dense_traffic, traffic_rows);

static const pl_field codec_layer_rows[] = {
    { "layer", PL_FIELD_CHARS(pl_codec_layer, layer) },
    { "plain_bytes", PL_FIELD_INT(pl_codec_layer, plain_bytes) },
    { "sent_bytes", PL_FIELD_INT(pl_codec_layer, sent_bytes) },
};
static const pl_fields codec_layer_fields =
    PL_FIELDS(pl_codec_layer, codec_layer_rows);

static const pl_field codec_rows[] = {
    { "name", PL_FIELD_CHARS(pl_codec_use, name) },
    { "changes_bits", PL_FIELD_BOOL(pl_codec_use, changes_bits) },
    { "local_steps", PL_FIELD_INT(pl_codec_use, local_steps),
      .when = PL_WHEN_SET },
    { "seconds", PL_FIELD_REAL(pl_codec_use, seconds) },
    { "layers",
      PL_FIELD_LIST(pl_codec_use, layers, layer_count, &codec_layer_fields),
      .when = PL_WHEN_SET, .most = PL_CODEC_LAYERS_MAX },
};
static const pl_fields codec_fields = PL_FIELDS(pl_codec_use, codec_rows);

#define TEXT(member)                                                           \
    PL_FIELD_TEXT(pl_summary, member), .when = PL_WHEN_KNOWN, .or_null = true
#define INT(member)                                                            \
    PL_FIELD_INT(pl_summary, member), .when = PL_WHEN_KNOWN, .or_null = true
#define REAL(member)                                                           \
    PL_FIELD_REAL(pl_summary, member), .when = PL_WHEN_KNOWN, .or_null = true

static const pl_field rows[] = {
    { "model", TEXT(model) },
    { "strategy", TEXT(strategy) },
    { "mode", TEXT(mode) },
    { "workers", INT(workers) },
    { "ps", INT(ps) },
    { "batch", INT(batch) },
    { "micro_batches", INT(micro_batches) },
    { "steps", INT(steps) },
    { "epochs", REAL(epochs) },
    { "examples", INT(examples) },
    { "examples_left_out", INT(examples_left_out) },
    { "seconds", REAL(seconds) },
    { "startup_seconds", REAL(startup_seconds) },
    { "eval_seconds", REAL(eval_seconds) },
    { "checkpoint_seconds", REAL(checkpoint_seconds) },
    { "tests", INT(tests) },
    { "checkpoints", INT(checkpoints) },
    { "examples_per_s", REAL(examples_per_s) },
    { "steps_per_s", REAL(steps_per_s) },
    { "train_loss", REAL(train_loss) },
    { NULL, PL_FIELD_INLINE(pl_summary, test, &pl_test_result_fields) },
    { "stopped_by", PL_FIELD_TEXT(pl_summary, stopped_by) },
    { "target_step", PL_FIELD_INT(pl_summary, target_step),
      .when = PL_WHEN_KNOWN, .or_null = true },
    { "target_seconds", REAL(target_seconds) },
    { "resumed_step", INT(resumed_step) },
    { "restarts", INT(restarts) },
    { "faults", INT(faults) },
    { "rollbacks", INT(rollbacks) },
    { "deterministic", PL_FIELD_BOOL(pl_summary, deterministic),
      .when = PL_WHEN_KNOWN },
    { "bad_examples", PL_FIELD_INT(pl_summary, bad_examples),
      .when = PL_WHEN_SET, .or_null = true },
    { "dropped_gradients", INT(dropped_gradients) },
    { "rolled_back", INT(rolled_back) },
    { "bytes_sent", INT(bytes_sent) },
    { "bytes_received", INT(bytes_received) },
    { "peak_rss_mb", INT(peak_rss_mb) },
    { "total_rss_mb", INT(total_rss_mb) },
    { "user_seconds", REAL(user_seconds) },
    { "system_seconds", REAL(system_seconds) },
    { "cpu_percent", REAL(cpu_percent) },
    { "disk_read_bytes", INT(disk_read_bytes) },
    { "disk_written_bytes", INT(disk_written_bytes) },
    { "per_server",
      PL_FIELD_LIST(pl_summary, per_server, server_count,
                    &pl_server_report_fields),
      .when = PL_WHEN_SET, .most = PL_REPORT_TASKS_MAX },
    { "evaluator",
      PL_FIELD_OBJECT(pl_summary, evaluator, &pl_evaluator_report_fields),
      PL_FIELD_GIVEN(pl_summary, has_evaluator) },
    { "events_dropped", INT(events_dropped) },
    { "kernels", TEXT(kernels) },
    { "parameters_sha256", PL_FIELD_CHARS(pl_summary, parameters_sha256),
      .when = PL_WHEN_KNOWN, .or_null = true },
    { "run", TEXT(run) },
    { "per_worker",
      PL_FIELD_LIST(pl_summary, per_worker, worker_count,
                    &pl_worker_report_fields),
      .when = PL_WHEN_KNOWN, .most = PL_REPORT_TASKS_MAX },
    { "started", REAL(started) },
    { "incidents",
      PL_FIELD_LIST(pl_summary, incidents, incident_count,
                    &pl_run_event_fields),
      .when = PL_WHEN_SET, .most = PL_INCIDENTS_MAX },
    { "bottleneck", PL_FIELD_OBJECT(pl_summary, bottleneck, &bottleneck_fields),
      PL_FIELD_GIVEN(pl_summary, has_bottleneck), .or_null = true },
    { "codec", PL_FIELD_OBJECT(pl_summary, codec, &codec_fields),
      PL_FIELD_GIVEN(pl_summary, has_codec) },
    { "dense_traffic",
      PL_FIELD_OBJECT(pl_summary, dense_traffic, &traffic_fields),
      PL_FIELD_GIVEN(pl_summary, has_dense_traffic) },
};
const pl_fields pl_summary_fields = PL_FIELDS(pl_summary, rows);

pl_status pl_summary_read(pl_summary *out, const char *path)
{
    pl_json *json;
    PL_TRY(pl_json_read_file(&json, path, SUMMARY_BYTES_MAX));
    pl_status status = pl_fields_read(&pl_summary_fields, json, out);
    if (status != PL_OK) {
        pl_json_free(json);
        return pl_context(status, "%s", path);
    }
    out->own_json = json;
    return PL_OK;
}

void pl_summary_close(pl_summary *summary)
{
    pl_json *json = summary->own_json;
    pl_fields_close(&pl_summary_fields, summary);
    pl_json_free(json);
}
