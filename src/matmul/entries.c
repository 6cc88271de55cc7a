/* entries.c - computes any entry of the matrices from the seed, as multiples of
 * 1/8 whose sums are exact in float32. */
#include "matmul/entries.h"

#include "base/rng.h"

#define IN_NUMBER 16 /* entries taken from one random number */
#define BITS      4
#define ONE       8 /* entries are multiples of 1 / ONE */

/* The random source of a matrix's entries. */
typedef struct source {
    uint64_t key;
    uint64_t in_row; /* random numbers */
} source;

static source open_source(const pl_matmul_job *job, int matrix)
{
    uint64_t key = pl_rng_key_text(job->seed, "matmul");
    return (source) { pl_rng_key(key, (uint64_t)matrix),
                      ((uint64_t)job->n + IN_NUMBER - 1) / IN_NUMBER };
}

/* ONE times the entry. */
static int entry(const source *s, int64_t row, int64_t column)
{
    uint64_t place = (uint64_t)column;
    uint64_t number =
        pl_rng_u64(s->key, (uint64_t)row * s->in_row + place / IN_NUMBER);
    return (int)(number >> (place % IN_NUMBER * BITS) & (2 * ONE - 1)) - ONE;
}

void pl_entries_block(const pl_matmul_job *job, int matrix, int32_t i,
                      int32_t j, float *out)
{
    source s = open_source(job, matrix);
    int64_t last_row = pl_matmul_first(job, i + 1);
    int64_t first = pl_matmul_first(job, j), last = pl_matmul_first(job, j + 1);
    for (int64_t row = pl_matmul_first(job, i); row < last_row; row++)
        for (int64_t c = first; c < last;) {
            uint64_t place = (uint64_t)c;
            uint64_t number =
                pl_rng_u64(s.key, (uint64_t)row * s.in_row + place / IN_NUMBER);
            number >>= place % IN_NUMBER * BITS;
            do {
                *out++ =
                    (float)((int)(number & (2 * ONE - 1)) - ONE) * (1.0f / ONE);
                number >>= BITS;
            } while (++c < last && c % IN_NUMBER != 0);
        }
}

double pl_entries_product(const pl_matmul_job *job, int64_t row, int64_t column)
{
    source a = open_source(job, PL_MATRIX_A), b = open_source(job, PL_MATRIX_B);
    int64_t sum = 0;
    for (int64_t k = 0; k < job->n; k++)
        sum += entry(&a, row, k) * entry(&b, k, column);
    return (double)sum / (ONE * ONE);
}

double pl_entries_trace(const pl_matmul_job *job, int32_t i, int32_t j)
{
    source a = open_source(job, PL_MATRIX_A);
    int64_t sum = 0, rows = pl_matmul_first(job, i + 1);
    int64_t columns = pl_matmul_first(job, j + 1);
    for (int64_t r = pl_matmul_first(job, i); r < rows; r++)
        for (int64_t c = pl_matmul_first(job, j); c < columns; c++)
            sum += entry(&a, r, c) * entry(&a, c, r);
    return (double)sum / (ONE * ONE);
}
