/* fuzz_param.c - the command line: arguments end in NUL bytes. */
#include "base/assert.h"
#include "base/param/param.h"
#include "fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

#define ARGS_MOST 64

struct options {
    int64_t batch;
    double lr;
    const char *run;
    bool profile;
    int reduction;
    pl_every eval;
};

static const pl_param params[] = {
    { .name = "batch",
      .kind = PL_PARAM_INT,
      .offset = offsetof(struct options, batch),
      .fallback = "100",
      .least = 1,
      .most = 1000000 },
    { .name = "lr",
      .kind = PL_PARAM_REAL,
      .offset = offsetof(struct options, lr),
      .fallback = "0.1" },
    { .name = "run",
      .kind = PL_PARAM_TEXT,
      .offset = offsetof(struct options, run) },
    { .name = "profile",
      .kind = PL_PARAM_FLAG,
      .offset = offsetof(struct options, profile) },
    { .name = "reduction",
      .kind = PL_PARAM_CHOICE,
      .offset = offsetof(struct options, reduction),
      .fallback = "mean",
      .choices = "mean|sum" },
    { .name = "eval-every",
      .kind = PL_PARAM_EVERY,
      .offset = offsetof(struct options, eval),
      .fallback = "1ep" },
};
#define PARAM_COUNT (sizeof params / sizeof *params)

/* What was accepted keeps to the table and can be written down again. */
static void check(const struct options *options)
{
    char text[64];
    PL_ASSERT(options->batch >= 1 && options->batch <= 1000000);
    PL_ASSERT(options->reduction == 0 || options->reduction == 1);
    PL_ASSERT(options->eval.unit == PL_EVERY_NEVER || options->eval.count >= 1);
    for (size_t i = 0; i < PARAM_COUNT; i++)
        pl_param_value_text(&params[i], options, text, sizeof text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    char *text = malloc(bytes + 1);
    if (text == NULL)
        return 0;
    memcpy(text, data, bytes);
    text[bytes] = '\0';

    char *argv[ARGS_MOST], *positional[ARGS_MOST];
    int argc = 0, positional_count;
    for (char *arg = text; arg < text + bytes && argc < ARGS_MOST;
         arg += strlen(arg) + 1)
        argv[argc++] = arg;

    struct options options;
    pl_param_group group = { "Fuzz", params, PARAM_COUNT, &options, NULL };
    PL_ASSERT(pl_param_defaults(&group, 1) == PL_OK);
    if (pl_param_parse(&group, 1, argc, argv, positional, &positional_count) ==
        PL_OK)
        check(&options);
    free(text);
    return 0;
}
