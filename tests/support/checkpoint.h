/* checkpoint.h - a small model's checkpoint, for tests.
 *
 * Its tensors are made from the step, so a test can tell which one it got. */
#ifndef PL_TESTS_CHECKPOINT_H
#define PL_TESTS_CHECKPOINT_H

#include "base/log.h"
#include "state/checkpoint/checkpoint.h"
#include "support/folder.h"

#define SAMPLE_TENSORS 2

/* As tests/golden/checkpoint has it, for step 42. */
typedef struct sample {
    float weight[6]; /* [2, 3]: step, step + 1, ... */
    float bias[3];   /* [3]: 2 step, 2 step + 1, ... */
    pl_checkpoint_tensor tensors[SAMPLE_TENSORS];
    pl_json *settings;
    pl_json *state;
    pl_manifest manifest;
} sample;

static inline void sample_fill(sample *s, int64_t step)
{
    for (int i = 0; i < 6; i++)
        s->weight[i] = (float)(step + i);
    for (int i = 0; i < 3; i++)
        s->bias[i] = (float)(2 * step + i);
    s->manifest.step = step;
}

static inline void sample_init(sample *s, int64_t step)
{
    static const char settings[] =
        "{\"batch\":32,\"optimizer\":\"sgd\",\"seed\":7}";
    static const char state[] =
        "{\"position\":\"2a00\",\"loss\":0.1,\"workers\":[1,2]}";
    *s = (sample) { 0 };
    s->tensors[0] =
        (pl_checkpoint_tensor) { "weight", PL_SHAPE(2, 3), s->weight, 0, 0 };
    s->tensors[1] =
        (pl_checkpoint_tensor) { "bias", PL_SHAPE(3), s->bias, 0, 0 };
    assert_ok(pl_json_parse(&s->settings, settings, strlen(settings), "s"));
    assert_ok(pl_json_parse(&s->state, state, strlen(state), "s"));
    s->manifest = (pl_manifest) { .model = "softmax",
                                  .settings = s->settings,
                                  .state = s->state };
    sample_fill(s, step);
}

static inline void sample_close(sample *s)
{
    pl_json_free(s->settings);
    pl_json_free(s->state);
}

/* A checkpoint of one shard, as one process writes it. */
static inline pl_status write_checkpoint(const char *checkpoints,
                                         const pl_manifest *manifest,
                                         const pl_checkpoint_tensor *tensors,
                                         size_t count)
{
    pl_status status;
    char *folder = NULL;
    pl_manifest_shard shard;
    PL_TRY_OUT(status,
               pl_checkpoint_begin(&folder, checkpoints, manifest->step));
    pl_checkpoint_part whole = { .of = 1, .tensors = tensors, .count = count };
    PL_TRY_OUT(status, pl_checkpoint_write_shard(folder, &whole, &shard));
    pl_manifest full = *manifest;
    full.shards = &shard;
    full.shard_count = 1;
    PL_TRY_OUT(status, pl_checkpoint_commit(folder, &full));
out:
    pl_mem_free(folder);
    return status == PL_OK ? PL_OK
                           : pl_context(status, "checkpoint of step %lld",
                                        (long long)manifest->step);
}

static inline pl_status sample_write(const char *folder, int64_t step)
{
    sample s;
    sample_init(&s, step);
    pl_status status =
        write_checkpoint(folder, &s.manifest, s.tensors, SAMPLE_TENSORS);
    sample_close(&s);
    return status;
}

/* The step of the newest checkpoint, whose content must be right; -1: none. */
static inline int64_t sample_found(const char *folder)
{
    pl_checkpoint *found = NULL;
    pl_status status = pl_checkpoint_find(&found, folder);
    if (status == PL_NOTFOUND)
        return -1;
    assert_int_equal(PL_OK, status);
    int64_t step = pl_checkpoint_manifest(found)->step;
    sample expected;
    sample loaded;
    sample_init(&expected, step);
    sample_init(&loaded, 0);
    assert_ok(pl_checkpoint_load(found, loaded.tensors, SAMPLE_TENSORS));
    assert_memory_equal(expected.weight, loaded.weight, sizeof loaded.weight);
    assert_memory_equal(expected.bias, loaded.bias, sizeof loaded.bias);
    assert_string_equal("softmax", pl_checkpoint_manifest(found)->model);
    assert_true(pl_json_equal(expected.settings,
                              pl_checkpoint_manifest(found)->settings));
    assert_true(
        pl_json_equal(expected.state, pl_checkpoint_manifest(found)->state));
    sample_close(&expected);
    sample_close(&loaded);
    pl_checkpoint_free(found);
    return step;
}

/* Warnings since the start of the test, and the last of them. */
typedef struct warnings {
    int count;
    char last[1024];
} warnings;

static inline void warnings_sink(void *context, pl_log_level level,
                                 const char *line)
{
    warnings *w = context;
    if (level != PL_LOG_WARN)
        return;
    w->count++;
    snprintf(w->last, sizeof w->last, "%s", line);
}

#endif
