/* mpi_sums - one rank of bench/peers/sums.py: the time of a sum.
 *
 * usage: mpirun -n 2 mpi_sums bare|engine FLOATS SECONDS
 *
 * `bare` calls MPI_Allreduce, in place; `engine` starts a sum of the engine mpi
 * and waits for it, in buckets as training does.  Rank 0 prints the
 * microseconds. */
#include "sync/allreduce/mpi/mpi.h"

#include "base/error.h"
#include "base/mem.h"

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BUCKET ((int64_t)1 << 20) /* floats */
#define WARM   3
#define LEAST  5

typedef struct sums {
    int64_t floats;
    int rank;
    float *memory;      /* of bare sums */
    pl_collective *mpi; /* NULL: bare */
} sums;

static pl_deadline patience(void)
{
    return pl_deadline_in_ms(pl_clock_real(), 60000);
}

static pl_status sum_by_engine(const sums *s)
{
    const pl_collective_ops *ops = s->mpi->ops;
    int32_t ticket = 0;
    for (int64_t first = 0; first < s->floats; first += BUCKET) {
        int64_t left = s->floats - first;
        pl_sum_range range = { .first = first,
                               .count = left < BUCKET ? left : BUCKET };
        PL_TRY(ops->start(s->mpi, &range, &ticket));
    }
    for (int32_t t = 0; t <= ticket; t++)
        PL_TRY(ops->wait(s->mpi, t, patience()));
    return ops->quiet(s->mpi, patience());
}

static pl_status sum(const sums *s)
{
    if (s->mpi != NULL)
        return sum_by_engine(s);
    if (MPI_Allreduce(MPI_IN_PLACE, s->memory, (int)s->floats, MPI_FLOAT,
                      MPI_SUM, MPI_COMM_WORLD) != MPI_SUCCESS)
        return PL_FAIL(PL_IO, "MPI_Allreduce failed");
    return PL_OK;
}

/* All ranks make the number of sums that rank 0 decides. */
static pl_status agree(const sums *s, int64_t *times)
{
    if (s->mpi != NULL) {
        int64_t all[2];
        PL_TRY(s->mpi->ops->offer(s->mpi, times, sizeof *times, NULL));
        PL_TRY(s->mpi->ops->exchange(s->mpi, all, patience()));
        *times = all[0];
        return PL_OK;
    }
    if (MPI_Bcast(times, 1, MPI_INT64_T, 0, MPI_COMM_WORLD) != MPI_SUCCESS)
        return PL_FAIL(PL_IO, "MPI_Bcast failed");
    return PL_OK;
}

static pl_status time_sums(const sums *s, int64_t times, double *each_s)
{
    int64_t begin = pl_clock_now_ns(pl_clock_real());
    for (int64_t i = 0; i < times; i++)
        PL_TRY(sum(s));
    *each_s = (double)(pl_clock_now_ns(pl_clock_real()) - begin) * 1e-9 /
              (double)times;
    return PL_OK;
}

static pl_status measure(const sums *s, double seconds)
{
    double each;
    PL_TRY(time_sums(s, WARM, &each));
    PL_TRY(time_sums(s, LEAST, &each));
    int64_t times = (int64_t)(seconds / each);
    if (times < LEAST)
        times = LEAST;
    PL_TRY(agree(s, &times));
    PL_TRY(time_sums(s, times, &each));
    if (s->rank == 0)
        printf("{\"us\": %.2f}\n", each * 1e6);
    return PL_OK;
}

static pl_status run_engine(sums *s, double seconds)
{
    pl_ranks ranks;
    PL_TRY(pl_mpi_new(&s->mpi,
                      &(pl_mpi_opts) { .floats = s->floats, .workers = 2 }));
    pl_status status = s->mpi->ops->join(s->mpi, &ranks);
    s->rank = ranks.rank;
    if (status == PL_OK) {
        memset(s->mpi->ops->memory(s->mpi), 0,
               (size_t)s->floats * sizeof(float));
        status = measure(s, seconds);
    }
    s->mpi->ops->free(s->mpi);
    return status;
}

static pl_status run_bare(sums *s, double seconds)
{
    PL_TRY(PL_NEW_ALIGNED(s->memory, (size_t)s->floats));
    memset(s->memory, 0, (size_t)s->floats * sizeof(float));
    pl_status status = PL_FAIL(PL_IO, "MPI_Init failed");
    if (MPI_Init(NULL, NULL) == MPI_SUCCESS) {
        MPI_Comm_rank(MPI_COMM_WORLD, &s->rank);
        status = measure(s, seconds);
        MPI_Finalize();
    }
    pl_mem_free(s->memory);
    return status;
}

static pl_status obey(int argc, char **argv)
{
    if (argc != 4)
        return PL_FAIL(PL_USAGE, "see bench/peers/sums.py, which runs this");
    sums s = { .floats = atoll(argv[2]) };
    if (s.floats < 1 || s.floats > INT32_MAX)
        return PL_FAIL(PL_USAGE, "%s floats", argv[2]);
    return strcmp(argv[1], "bare") == 0 ? run_bare(&s, atof(argv[3]))
                                        : run_engine(&s, atof(argv[3]));
}

int main(int argc, char **argv)
{
    pl_status status = obey(argc, argv);
    if (status != PL_OK)
        fprintf(stderr, "mpi_sums: %s\n", pl_error_message());
    return status == PL_OK ? 0 : 1;
}
