/* data.h - examples for the tests of the library, as a program would have them:
 * made of public headers alone. */
#ifndef PL_TESTS_LIBRARY_DATA_H
#define PL_TESTS_LIBRARY_DATA_H

#include <paceline.h>

#include <dirent.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define ROWS    600
#define SIDE    8
#define PIXELS  (SIDE * SIDE)
#define CLASSES 4
#define COLUMNS 500
#define FILLED  6 /* non-zeros of a row */

#define assert_ok(call)                                                        \
    do {                                                                       \
        if ((call) != PL_OK)                                                   \
            fail_msg("%s", pl_error_message());                                \
    } while (0)

/* The call fails with this status, and its message contains these words. */
#define assert_refused(status, words, call)                                    \
    do {                                                                       \
        assert_int_equal(status, (call));                                      \
        if (strstr(pl_error_sentence(), words) == NULL)                        \
            fail_msg("expected \"%s\" in: %s", words, pl_error_sentence());    \
    } while (0)

typedef struct dense_data {
    uint8_t bytes[ROWS * PIXELS];
    float floats[ROWS * PIXELS]; /* the same, divided by 255 */
    int32_t labels[ROWS];
} dense_data;

static inline uint32_t next_random(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

/* Noise with a bright quarter, which is the class. */
static inline void fill_dense(dense_data *d, uint32_t seed)
{
    for (int r = 0; r < ROWS; r++) {
        d->labels[r] = r % CLASSES;
        for (int p = 0; p < PIXELS; p++) {
            int quarter = (p / SIDE >= SIDE / 2) * 2 + (p % SIDE >= SIDE / 2);
            uint32_t noise = next_random(&seed) % 120;
            bool bright = quarter == d->labels[r];
            uint8_t value = (uint8_t)(noise + (bright ? 60 : 0));
            d->bytes[r * PIXELS + p] = value;
            d->floats[r * PIXELS + p] = (float)value * (1.0f / 255.0f);
        }
    }
}

static inline pl_data *dense_bytes(const dense_data *d)
{
    pl_data *data;
    assert_ok(pl_data_from_dense(&data, &(pl_data_dense) {
                                            .features = d->bytes,
                                            .dtype = PL_UINT8,
                                            .rows = ROWS,
                                            .example = PL_SHAPE(SIDE, SIDE),
                                            .labels = d->labels,
                                        }));
    return data;
}

typedef struct sparse_data {
    int64_t indptr[ROWS + 1], indices[ROWS * FILLED];
    int32_t indptr_32[ROWS + 1], indices_32[ROWS * FILLED];
    float values[ROWS * FILLED];
    int32_t labels[ROWS];
} sparse_data;

/* The label is whether an id below 10 is among the row's. */
static inline void fill_sparse(sparse_data *s, uint32_t seed)
{
    for (int r = 0; r < ROWS; r++) {
        s->labels[r] = r % 2;
        s->indptr[r + 1] = s->indptr_32[r + 1] = (r + 1) * FILLED;
        for (int i = 0; i < FILLED; i++) {
            int at = r * FILLED + i;
            int64_t id = 10 + next_random(&seed) % (COLUMNS - 10);
            if (i == 0 && s->labels[r] == 1)
                id = next_random(&seed) % 10;
            s->indices[at] = id;
            s->indices_32[at] = (int32_t)id;
            s->values[at] = 0.5f + (float)(next_random(&seed) % 100) / 100.0f;
        }
    }
}

static inline pl_data *sparse_rows(const sparse_data *s, int bits)
{
    pl_data *data;
    assert_ok(pl_data_from_csr(
        &data,
        &(pl_data_csr) {
            .rows = ROWS,
            .columns = COLUMNS,
            .index_bits = bits,
            .indptr = bits == 32 ? (const void *)s->indptr_32 : s->indptr,
            .indices = bits == 32 ? (const void *)s->indices_32 : s->indices,
            .values = s->values,
            .labels = s->labels,
        }));
    return data;
}

/* Entries of a folder of /proc: open files (fd), threads (task). */
static inline int count_own(const char *what)
{
    char path[64];
    int count = 0;
    snprintf(path, sizeof path, "/proc/self/%s", what);
    DIR *folder = opendir(path);
    assert_non_null(folder);
    while (readdir(folder) != NULL)
        count++;
    closedir(folder);
    return count;
}

/* A joined thread may still be exiting. */
static inline void assert_threads(int count)
{
    for (int i = 0; i < 10000 && count_own("task") > count; i++)
        usleep(1000);
    assert_int_equal(count, count_own("task"));
}

/* Train to the end and forget all but the parameters' hash. */
static inline void hash_of(const pl_train_opts *opts, char hash[65])
{
    pl_training *training;
    pl_train_result result;
    assert_ok(pl_train_start(&training, opts));
    assert_ok(pl_train_wait(training, &result));
    snprintf(hash, 65, "%s", result.parameters_sha256);
    assert_int_equal(64, strlen(hash));
    pl_train_free(training);
}

#endif
