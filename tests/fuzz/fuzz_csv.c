/* fuzz_csv.c - tables: columns detected, and given. */
#include "base/assert.h"
#include "data/csv/csv.h"
#include "fuzz/fuzz.h"
#include "tensor/shape.h"

static void check(const pl_dataset *set)
{
    volatile float sum = 0;
    for (int64_t r = 0; r < set->count; r++) {
        for (int64_t c = 0; c < pl_shape_row(set->shape); c++)
            sum = sum + pl_view_row_f32(&set->features, r)[c];
        if (set->labels.data == NULL)
            continue;
        if (set->numeric) {
            sum = sum + *pl_view_row_f32(&set->labels, r);
            continue;
        }
        PL_ASSERT(pl_view_label(&set->labels, r) >= 0);
        PL_ASSERT(pl_view_label(&set->labels, r) < set->classes);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    const pl_source_opts opts[] = {
        { .threads = 1, .unlabelled = true, .allow_missing = true },
        { .threads = 1,
          .label_column = "1",
          .categories = "1,3",
          .ignore_columns = "2",
          .fill_missing = "0" },
        { .threads = 1, .numeric = true, .label_column = "1" },
    };
    for (size_t i = 0; i < sizeof opts / sizeof *opts; i++) {
        pl_dataset *set;
        if (pl_csv_open_memory(&set, data, bytes, &opts[i]) == PL_OK) {
            check(set);
            pl_dataset_free(set);
        }
    }
    return 0;
}
