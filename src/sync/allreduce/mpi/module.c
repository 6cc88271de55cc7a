/* module.c - the only code linked to MPI: a table of functions over plain C
 * types.  Two ranks exchange their data and add it in a fixed order; more ranks
 * use MPI_Iallreduce. */
#include "sync/allreduce/mpi/module.h"

#include <mpi.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NOTES         64        /* in flight */
#define EXCHANGE_MOST (8 << 20) /* floats */
#define EXCHANGES     3         /* under way */

struct pl_mpi_world {
    MPI_Comm sums, gathers, notes; /* separate, so that messages cannot mix */
    int rank, size;
    MPI_Request sum[PL_MPI_SLOTS];
    /* Two ranks exchange their data, one sum after the other, and add it
     * themselves: this takes half the time of a collective. */
    struct {
        float *data; /* NULL: a collective */
        int count;
    } queue[PL_MPI_SLOTS];
    int queued, posted, added; /* of the queue, in order */
    MPI_Request exchange[EXCHANGES][2];
    float *theirs[EXCHANGES];
    int room[EXCHANGES]; /* floats of theirs */
    MPI_Request gather;
    MPI_Request note[NOTES];
    char note_text[NOTES][PL_MPI_NOTE];
};

const pl_mpi_table *paceline_mpi_table(void);

static int make_comm(MPI_Comm *out)
{
    int code = MPI_Comm_dup(MPI_COMM_WORLD, out);
    return code != MPI_SUCCESS
               ? code
               : MPI_Comm_set_errhandler(*out, MPI_ERRORS_RETURN);
}

static int open_world(pl_mpi_world *world)
{
    int code = make_comm(&world->sums);
    if (code == MPI_SUCCESS)
        code = make_comm(&world->gathers);
    if (code == MPI_SUCCESS)
        code = make_comm(&world->notes);
    if (code == MPI_SUCCESS)
        code = MPI_Comm_rank(world->sums, &world->rank);
    if (code == MPI_SUCCESS)
        code = MPI_Comm_size(world->sums, &world->size);
    return code;
}

static int init(pl_mpi_world **out)
{
    int given;
    int code = MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &given);
    if (code == MPI_SUCCESS && given < MPI_THREAD_SERIALIZED)
        code = MPI_ERR_OTHER;
    if (code != MPI_SUCCESS)
        return code;
    pl_mpi_world *world = calloc(1, sizeof *world);
    if (world == NULL)
        return MPI_ERR_NO_MEM;
    world->gather = MPI_REQUEST_NULL;
    for (int i = 0; i < EXCHANGES; i++)
        world->exchange[i][0] = world->exchange[i][1] = MPI_REQUEST_NULL;
    for (int i = 0; i < PL_MPI_SLOTS; i++)
        world->sum[i] = MPI_REQUEST_NULL;
    for (int i = 0; i < NOTES; i++)
        world->note[i] = MPI_REQUEST_NULL;
    code = open_world(world);
    if (code == MPI_SUCCESS)
        *out = world;
    else
        free(world);
    return code;
}

static void forget(pl_mpi_world *world)
{
    free(world);
}

static int finish(pl_mpi_world *world)
{
    for (int i = 0; i < NOTES; i++)
        if (world->note[i] != MPI_REQUEST_NULL)
            MPI_Request_free(&world->note[i]); /* the text outlives it */
    int code = MPI_Finalize();
    for (int i = 0; i < EXCHANGES; i++)
        free(world->theirs[i]);
    forget(world);
    return code;
}

static int rank_of(const pl_mpi_world *world)
{
    return world->rank;
}

static int size_of(const pl_mpi_world *world)
{
    return world->size;
}

static int make_room(pl_mpi_world *world, int at, int count)
{
    if (count <= world->room[at])
        return MPI_SUCCESS;
    free(world->theirs[at]);
    world->room[at] = 0;
    world->theirs[at] = malloc((size_t)count * sizeof(float));
    if (world->theirs[at] == NULL)
        return MPI_ERR_NO_MEM;
    world->room[at] = count;
    return MPI_SUCCESS;
}

/* Begin the next exchange of the queue. */
static int post_exchange(pl_mpi_world *world)
{
    int at = world->posted % EXCHANGES, other = 1 - world->rank;
    float *data = world->queue[world->posted].data;
    int count = world->queue[world->posted].count;
    world->posted++;
    if (data == NULL)
        return MPI_SUCCESS;
    int code = make_room(world, at, count);
    if (code == MPI_SUCCESS)
        code = MPI_Irecv(world->theirs[at], count, MPI_FLOAT, other, 0,
                         world->sums, &world->exchange[at][0]);
    if (code == MPI_SUCCESS)
        code = MPI_Isend(data, count, MPI_FLOAT, other, 0, world->sums,
                         &world->exchange[at][1]);
    return code;
}

/* Add the next exchange in order if its data has arrived; *done: it has. */
static int add_exchange(pl_mpi_world *world, int *done)
{
    int at = world->added % EXCHANGES;
    float *data = world->queue[world->added].data;
    *done = 1;
    if (data != NULL) {
        int code =
            MPI_Testall(2, world->exchange[at], done, MPI_STATUSES_IGNORE);
        if (code != MPI_SUCCESS || !*done)
            return code;
        code = MPI_Reduce_local(world->theirs[at], data,
                                world->queue[world->added].count, MPI_FLOAT,
                                MPI_SUM);
        if (code != MPI_SUCCESS)
            return code;
    }
    world->added++;
    return MPI_SUCCESS;
}

static int go_on(pl_mpi_world *world)
{
    int code = MPI_SUCCESS;
    for (int done = 1; done && code == MPI_SUCCESS;) {
        while (code == MPI_SUCCESS && world->posted < world->queued &&
               world->posted - world->added < EXCHANGES)
            code = post_exchange(world);
        if (code != MPI_SUCCESS || world->added == world->posted)
            break;
        code = add_exchange(world, &done);
    }
    return code;
}

/* Slots restart at 0 when all sums are done. */
static int sum(pl_mpi_world *world, int slot, float *data, int count)
{
    bool exchange = world->size == 2 && count <= EXCHANGE_MOST;
    if (slot == 0)
        world->queued = world->posted = world->added = 0;
    world->queue[slot].data = exchange ? data : NULL;
    world->queue[slot].count = count;
    world->queued = slot + 1;
    if (exchange)
        return go_on(world);
    return MPI_Iallreduce(MPI_IN_PLACE, data, count, MPI_FLOAT, MPI_SUM,
                          world->sums, &world->sum[slot]);
}

static int sum_done(pl_mpi_world *world, int slot, int *done)
{
    int code = go_on(world);
    if (code != MPI_SUCCESS || world->queue[slot].data == NULL)
        return code != MPI_SUCCESS
                   ? code
                   : MPI_Test(&world->sum[slot], done, MPI_STATUS_IGNORE);
    *done = slot < world->added;
    return MPI_SUCCESS;
}

static int gather(pl_mpi_world *world, const void *mine, void *all, int bytes)
{
    return MPI_Iallgather(mine, bytes, MPI_BYTE, all, bytes, MPI_BYTE,
                          world->gathers, &world->gather);
}

static int gather_done(pl_mpi_world *world, int *done)
{
    return MPI_Test(&world->gather, done, MPI_STATUS_IGNORE);
}

static int send(pl_mpi_world *world, int to, const void *note, int bytes)
{
    for (int i = 0; i < NOTES; i++) {
        int done = 1;
        if (world->note[i] != MPI_REQUEST_NULL)
            (void)MPI_Test(&world->note[i], &done, MPI_STATUS_IGNORE);
        if (!done)
            continue;
        memcpy(world->note_text[i], note, (size_t)bytes);
        return MPI_Isend(world->note_text[i], bytes, MPI_BYTE, to, 0,
                         world->notes, &world->note[i]);
    }
    return MPI_SUCCESS;
}

static int receive(pl_mpi_world *world, int *from, void *note, int *bytes)
{
    int there;
    MPI_Status status;
    *from = -1;
    int code = MPI_Iprobe(MPI_ANY_SOURCE, 0, world->notes, &there, &status);
    if (code != MPI_SUCCESS || !there)
        return code;
    code = MPI_Recv(note, PL_MPI_NOTE, MPI_BYTE, status.MPI_SOURCE, 0,
                    world->notes, &status);
    if (code == MPI_SUCCESS)
        code = MPI_Get_count(&status, MPI_BYTE, bytes);
    if (code == MPI_SUCCESS)
        *from = status.MPI_SOURCE;
    return code;
}

static void text(int code, char *out, int room)
{
    char buffer[MPI_MAX_ERROR_STRING];
    int length;
    if (MPI_Error_string(code, buffer, &length) == MPI_SUCCESS)
        snprintf(out, (size_t)room, "%s", buffer);
    else
        snprintf(out, (size_t)room, "error %d", code);
}

static void library(char *out, int room)
{
    char version[MPI_MAX_LIBRARY_VERSION_STRING];
    int length;
    if (MPI_Get_library_version(version, &length) != MPI_SUCCESS)
        snprintf(version, sizeof version, "MPI");
    snprintf(out, (size_t)room, "%.*s", (int)strcspn(version, ",\n"), version);
}

const pl_mpi_table *paceline_mpi_table(void)
{
    static const pl_mpi_table table = {
        .version = PL_MPI_TABLE,
        .init = init,
        .finish = finish,
        .forget = forget,
        .rank = rank_of,
        .size = size_of,
        .sum = sum,
        .sum_done = sum_done,
        .gather = gather,
        .gather_done = gather_done,
        .send = send,
        .receive = receive,
        .text = text,
        .library = library,
    };
    return &table;
}
