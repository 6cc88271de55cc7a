/* sparse.h - sparse examples in tests: sets from bytes, batches as text.
 *
 * Threads: one. */
#ifndef PL_TESTS_SPARSE_H
#define PL_TESTS_SPARSE_H

#include "data/sparse/set.h"
#include "support/unit.h"

/* Append a batch to `text` as "1 3:1 5:0.5|0|...", a '|' after each row. */
static inline void sparse_text(const pl_batch *batch, char *text, size_t room)
{
    size_t used = strlen(text);
    for (int64_t r = 0; r < batch->rows; r++) {
        used += (size_t)snprintf(text + used, room - used, "%d",
                                 (int)pl_view_label(&batch->labels, r));
        int64_t s = batch->row_index != NULL ? batch->row_index[r] : r;
        for (int64_t i = batch->row_start[s]; i < batch->row_start[s + 1]; i++)
            used += (size_t)snprintf(
                text + used, room - used, " %llu:%g",
                (unsigned long long)batch->ids[i],
                batch->values != NULL ? (double)batch->values[i] : 1.0);
        used += (size_t)snprintf(text + used, room - used, "|");
        assert_true(used < room);
    }
}

/* All examples of a set in the order of its files. */
static inline const char *sparse_pass(pl_dataset *set, int64_t batch,
                                      char *text, size_t room)
{
    pl_reader *reader;
    pl_batch each;
    text[0] = '\0';
    assert_ok(pl_reader_new(
        &reader, set, &(pl_reader_opts) { .batch = batch, .one_pass = true }));
    do {
        assert_ok(pl_reader_next(reader, &each));
        sparse_text(&each, text, room);
    } while (each.rows > 0);
    pl_reader_free(reader);
    return text;
}

#endif
