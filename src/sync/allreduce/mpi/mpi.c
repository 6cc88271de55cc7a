/* Decides which thread drives MPI and when a silent rank is lost.
 *
 * All calls of the module are made under one lock.  The tender, a thread, joins
 * and leaves the world (MPI requires the same thread for both) and in between
 *   - polls MPI while sums are under way and the caller computes: MPI transfers
 *     data only inside its calls;
 *   - answers roll calls periodically, so that a rank that computes for a long
 *     time is not considered lost.
 * A caller that waits polls MPI itself, at first without pausing.
 *
 * Membership: MPI starts and ends all ranks together, so there is no joining,
 * no rejoining and no coordinator; only the liveness part of job/member is
 * used.  Heartbeats are sent on request: a rank that has waited for three
 * fifths of the timeout sends a roll call to all ranks, and a rank that has not
 * answered when the timeout has passed is lost.  The tender or the waiting
 * caller answers, so a stopped process never does. */
#include "sync/allreduce/mpi/mpi.h"

#include "base/error.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/thread.h"
#include "job/member/liveness.h"
#include "sync/allreduce/mpi/module.h"

#include <dlfcn.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define HEARTBEAT_MS 5000
#define JOIN_MS      60000
#define GRAIN        16
#define HOST_BYTES   64
#define SPIN_NS      50000   /* of a wait, before yielding */
#define YIELD_NS     1000000 /* ... before sleeping */
#define NAP_NS       50000
#define IDLE_MS      200 /* between two polls for notes */

_Static_assert(PL_MPI_SLOTS >= PL_COLLECTIVE_SUMS_MOST, "a slot a ticket");

/* The first byte of a note. */
enum {
    NOTE_CALL = 1, /* roll call */
    NOTE_HERE,
    NOTE_FAILED, /* the job fails; followed by the reason */
};

typedef struct engine {
    pl_collective base;
    const pl_mpi_table *mpi;
    void *library; /* of dlopen */
    int64_t heartbeat_ms, join_ms;
    int32_t workers, rank;
    float *memory;
    char (*hosts)[HOST_BYTES]; /* [workers] */

    pl_thread *tender;
    pl_mutex lock; /* of all below, and of MPI itself */
    pl_cond changed;
    pl_mpi_world *world;
    bool joined;  /* init has returned */
    bool leaving; /* the tender should end */
    bool tending; /* the caller computes while sums are under way */
    pl_error failed;
    int32_t tickets; /* sums since the last quiet */
    bool done[PL_COLLECTIVE_SUMS_MOST];

    bool waiting; /* the last wait ended at its deadline and may continue */
    int64_t since_ns, looked_ns; /* when the current wait began, and last
                                    polled */
    int64_t called_ns;           /* 0: no roll call */
    pl_liveness *lives;          /* [workers] */

    size_t status_bytes; /* of the exchange under way */
    pl_combine *combine;
    char status[PL_COLLECTIVE_BYTES_MOST];
    char *statuses; /* [workers * PL_COLLECTIVE_BYTES_MOST] */
    pl_collective_view view;
} engine;

static engine *engine_of(pl_collective *c)
{
    return (engine *)c;
}

static int64_t now_ns(void)
{
    return pl_clock_now_ns(pl_clock_real());
}

/* --- failing ---------------------------------------------------------- */

/* The first failure is kept: every later call fails with it. */
static pl_status fail(engine *e, pl_status status)
{
    if (e->failed.status == PL_OK)
        pl_error_save(&e->failed, status);
    return pl_error_raise(&e->failed);
}

static pl_status check(engine *e, int code, const char *what)
{
    if (code == 0)
        return PL_OK;
    char text[256];
    e->mpi->text(code, text, sizeof text);
    return fail(e, PL_FAIL(PL_CLOSED, "MPI: %s: %s", what, text));
}

static void send_note(engine *e, int to, int kind, const char *text)
{
    char note[PL_MPI_NOTE];
    int bytes = snprintf(note, sizeof note, "%c%s", kind, text);
    if (bytes >= (int)sizeof note)
        bytes = sizeof note - 1;
    (void)e->mpi->send(e->world, to, note, bytes); /* best effort */
}

static void send_all(engine *e, int kind, const char *text)
{
    for (int32_t rank = 0; rank < e->workers; rank++)
        if (rank != e->rank)
            send_note(e, rank, kind, text);
}

/* Handle the notes of other ranks.  The senders are ranks of our job, but a
 * note may still be malformed. */
static pl_status read_notes(engine *e)
{
    char note[PL_MPI_NOTE];
    int from, bytes = 0;
    for (;;) {
        PL_TRY(check(e, e->mpi->receive(e->world, &from, note, &bytes),
                     "receive"));
        if (from < 0)
            return e->failed.status == PL_OK ? PL_OK
                                             : pl_error_raise(&e->failed);
        if (bytes < 1 || from >= e->workers)
            continue;
        if (note[0] == NOTE_CALL)
            send_note(e, from, NOTE_HERE, "");
        else if (note[0] == NOTE_HERE)
            e->lives[from].heard_ns = now_ns();
        else if (note[0] == NOTE_FAILED)
            (void)fail(e, PL_FAIL(PL_CLOSED, "worker %d on %s failed: %.*s",
                                  from, e->hosts[from], bytes - 1, note + 1));
    }
}

/* --- waiting ---------------------------------------------------------- */

static pl_status lose(engine *e, int32_t rank, int64_t now)
{
    char task[HOST_BYTES + 32], text[PL_LOSS_TEXT];
    snprintf(task, sizeof task, "worker %d (%s)", rank, e->hosts[rank]);
    pl_loss_text(text,
                 &(pl_loss) {
                     .task = task,
                     .life = &e->lives[rank],
                     .state = PL_SILENT,
                     .next = "an MPI job cannot continue without it: start the "
                             "job again with --resume",
                     .now_ns = now,
                 });
    return fail(e, PL_FAIL(PL_CLOSED, "%s", text));
}

static void begin_patience(engine *e, int64_t now)
{
    e->since_ns = e->looked_ns = now;
    e->called_ns = 0;
    for (int32_t rank = 0; rank < e->workers; rank++)
        pl_liveness_reset(&e->lives[rank], now);
}

/* Check that every rank is alive.  Called repeatedly while we wait. */
static pl_status call_roll(engine *e, int64_t now)
{
    int64_t patience = e->heartbeat_ms * 1000000 / 5 * 3;
    if (pl_liveness_gap(&e->looked_ns, e->heartbeat_ms, now) > 0)
        begin_patience(e, now); /* this process was stopped */
    if (e->called_ns == 0 && now - e->since_ns > patience) {
        send_all(e, NOTE_CALL, "");
        e->called_ns = now;
    }
    if (e->called_ns == 0)
        return PL_OK;
    bool all = true;
    for (int32_t rank = 0; rank < e->workers; rank++) {
        const pl_liveness *life = &e->lives[rank];
        if (rank == e->rank || life->heard_ns >= e->called_ns)
            continue;
        if (pl_liveness_judge(life, e->heartbeat_ms, now) != PL_ALIVE)
            return lose(e, rank, now);
        all = false;
    }
    if (all) /* all are alive; a rank computes for a long time */
        begin_patience(e, now);
    return PL_OK;
}

static void begin_wait(engine *e)
{
    if (e->waiting)
        return;
    e->waiting = true;
    begin_patience(e, now_ns());
}

static void rest(int64_t waited_ns)
{
    if (waited_ns < SPIN_NS)
        return;
    if (waited_ns < YIELD_NS)
        sched_yield();
    else
        nanosleep(&(struct timespec) { .tv_nsec = NAP_NS }, NULL);
}

/* Poll the sum `ticket`, or the gather if it is -1. */
static pl_status look(engine *e, int32_t ticket, bool *done)
{
    int is_done = 0;
    if (e->failed.status != PL_OK)
        return pl_error_raise(&e->failed);
    PL_TRY(check(e,
                 ticket < 0 ? e->mpi->gather_done(e->world, &is_done)
                            : e->mpi->sum_done(e->world, ticket, &is_done),
                 ticket < 0 ? "gather" : "sum"));
    *done = is_done != 0;
    if (*done)
        return PL_OK;
    PL_TRY(read_notes(e));
    return call_roll(e, now_ns());
}

static pl_status wait_for(engine *e, int32_t ticket, pl_deadline deadline)
{
    int64_t begin = now_ns();
    bool done = false;
    pl_mutex_lock(&e->lock);
    e->tending = false;
    begin_wait(e);
    pl_mutex_unlock(&e->lock);
    for (;;) {
        pl_mutex_lock(&e->lock);
        pl_status status = look(e, ticket, &done);
        e->waiting = !done;
        pl_mutex_unlock(&e->lock);
        if (status != PL_OK || done)
            return status;
        if (pl_deadline_passed(deadline))
            return PL_FAIL(PL_TIMEOUT, "the other workers' gradients have not "
                                       "arrived");
        rest(now_ns() - begin);
    }
}

/* --- the tender ------------------------------------------------------- */

/* Poll MPI: testing one sum advances all that are under way. */
static pl_status poke(engine *e)
{
    for (int32_t t = 0; t < e->tickets; t++) {
        int done = 0;
        if (e->done[t])
            continue;
        PL_TRY(check(e, e->mpi->sum_done(e->world, t, &done), "sum"));
        e->done[t] = done != 0;
        if (!done)
            break;
    }
    return read_notes(e);
}

static void tend(engine *e)
{
    while (!e->leaving) {
        if (e->failed.status == PL_OK)
            (void)(e->tending ? poke(e) : read_notes(e)); /* kept in failed */
        if (e->tending) {
            pl_mutex_unlock(&e->lock);
            nanosleep(&(struct timespec) { .tv_nsec = NAP_NS }, NULL);
            pl_mutex_lock(&e->lock);
        } else if (pl_cond_wait_until(
                       &e->changed, &e->lock,
                       pl_deadline_in_ms(pl_clock_real(), IDLE_MS)) != PL_OK) {
            continue; /* time to poll */
        }
    }
}

static pl_status tender_main(void *arg)
{
    engine *e = arg;
    pl_mpi_world *world = NULL;
    int code = e->mpi->init(&world); /* waits for all ranks */
    pl_mutex_lock(&e->lock);
    e->world = world;
    e->joined = true;
    pl_status status = check(e, code, "MPI_Init");
    pl_cond_broadcast(&e->changed);
    if (status == PL_OK)
        tend(e);
    bool failed = e->failed.status != PL_OK;
    pl_mutex_unlock(&e->lock);
    if (world == NULL)
        return PL_OK;
    if (failed)
        e->mpi->forget(world);
    else if (e->mpi->finish(world) != 0)
        pl_log(PL_LOG_WARN, "MPI_Finalize failed");
    return PL_OK;
}

/* --- the table -------------------------------------------------------- */

static pl_status mpi_offer(pl_collective *c, const void *status, size_t bytes,
                           pl_combine *combine);

static pl_status exchange_hosts(engine *e, pl_deadline deadline)
{
    char host[HOST_BYTES] = "";
    (void)gethostname(host, sizeof host - 1);
    PL_TRY(mpi_offer(&e->base, host, sizeof host, NULL));
    PL_TRY(wait_for(e, -1, deadline));
    pl_mutex_lock(&e->lock); /* the tender reads notes, too */
    memcpy(e->hosts, e->statuses, sizeof *e->hosts * (size_t)e->workers);
    for (int32_t rank = 0; rank < e->workers; rank++)
        e->hosts[rank][HOST_BYTES - 1] = '\0';
    pl_mutex_unlock(&e->lock);
    return PL_OK;
}

static pl_status wait_init(engine *e, pl_deadline deadline)
{
    pl_status status = PL_OK;
    pl_mutex_lock(&e->lock);
    while (!e->joined && status == PL_OK)
        status = pl_cond_wait_until(&e->changed, &e->lock, deadline);
    if (!e->joined)
        status = fail(e, PL_FAIL(PL_TIMEOUT,
                                 "MPI_Init has not returned for %lld s: some "
                                 "of the %d ranks did not start; "
                                 "--join-timeout sets how long to wait",
                                 (long long)(e->join_ms / 1000), e->workers));
    else if (e->failed.status != PL_OK)
        status = pl_error_raise(&e->failed);
    else
        status = PL_OK;
    pl_mutex_unlock(&e->lock);
    return status;
}

static pl_status mpi_join(pl_collective *c, pl_ranks *out)
{
    engine *e = engine_of(c);
    if (e->tender != NULL) /* no rank can rejoin */
        return pl_error_raise(&e->failed);
    PL_TRY(pl_thread_start(&e->tender, "mpi", tender_main, e));
    pl_deadline deadline = pl_deadline_in_ms(pl_clock_real(), e->join_ms);
    PL_TRY(wait_init(e, deadline));
    e->rank = e->mpi->rank(e->world);
    if (e->mpi->size(e->world) != e->workers)
        return fail(e, PL_FAIL(PL_USAGE,
                               "MPI started %d ranks, but the job has %d "
                               "workers; give mpirun -n %d, or leave out "
                               "--workers",
                               e->mpi->size(e->world), e->workers, e->workers));
    PL_TRY(exchange_hosts(e, deadline));
    char library[64];
    e->mpi->library(library, sizeof library);
    pl_log(PL_LOG_INFO, "%s; its traffic is not encrypted", library);
    *out = (pl_ranks) { .rank = e->rank, .count = e->workers, .grain = GRAIN };
    return PL_OK;
}

static float *mpi_memory(pl_collective *c)
{
    return engine_of(c)->memory;
}

static pl_status start_locked(engine *e, const pl_sum_range *range,
                              int32_t *ticket)
{
    int64_t count = range->count;
    if (e->failed.status != PL_OK)
        return pl_error_raise(&e->failed);
    if (e->tickets == PL_COLLECTIVE_SUMS_MOST || count > INT_MAX)
        return PL_FAIL(PL_UNSUPPORTED, "a sum of %lld floats, the %dth",
                       (long long)count, e->tickets);
    *ticket = e->tickets;
    PL_TRY(check(
        e, e->mpi->sum(e->world, *ticket, e->memory + range->first, (int)count),
        "sum"));
    e->done[e->tickets++] = false;
    e->view.sent_bytes += count * (int64_t)sizeof *e->memory;
    e->view.received_bytes += count * (int64_t)sizeof *e->memory;
    if (range->more && !e->tending)
        pl_cond_signal(&e->changed);
    e->tending = range->more;
    return PL_OK;
}

static pl_status mpi_start(pl_collective *c, const pl_sum_range *range,
                           int32_t *ticket)
{
    engine *e = engine_of(c);
    pl_mutex_lock(&e->lock);
    pl_status status = start_locked(e, range, ticket);
    pl_mutex_unlock(&e->lock);
    return status;
}

static pl_status mpi_wait(pl_collective *c, int32_t ticket,
                          pl_deadline deadline)
{
    engine *e = engine_of(c);
    pl_mutex_lock(&e->lock);
    bool done = e->failed.status == PL_OK && e->done[ticket];
    pl_mutex_unlock(&e->lock);
    if (done)
        return PL_OK;
    PL_TRY(wait_for(e, ticket, deadline));
    pl_mutex_lock(&e->lock);
    e->done[ticket] = true;
    pl_mutex_unlock(&e->lock);
    return PL_OK;
}

static pl_status mpi_quiet(pl_collective *c, pl_deadline deadline)
{
    engine *e = engine_of(c);
    for (int32_t t = 0; t < e->tickets; t++)
        PL_TRY(mpi_wait(c, t, deadline));
    pl_mutex_lock(&e->lock);
    e->tickets = 0;
    e->tending = false;
    pl_mutex_unlock(&e->lock);
    return PL_OK;
}

static pl_status mpi_offer(pl_collective *c, const void *status, size_t bytes,
                           pl_combine *combine)
{
    engine *e = engine_of(c);
    if (bytes > PL_COLLECTIVE_BYTES_MOST)
        return PL_FAIL(PL_UNSUPPORTED, "a status of %zu bytes", bytes);
    pl_mutex_lock(&e->lock);
    memcpy(e->status, status, bytes);
    e->status_bytes = bytes;
    e->combine = combine;
    pl_status begun = e->failed.status != PL_OK
                          ? pl_error_raise(&e->failed)
                          : check(e,
                                  e->mpi->gather(e->world, e->status,
                                                 e->statuses, (int)bytes),
                                  "gather");
    pl_mutex_unlock(&e->lock);
    return begun;
}

/* Every rank has all statuses and combines them in the same way. */
static pl_status mpi_exchange(pl_collective *c, void *out, pl_deadline deadline)
{
    engine *e = engine_of(c);
    size_t bytes = e->status_bytes;
    PL_TRY(wait_for(e, -1, deadline));
    bool all = e->combine == NULL && e->rank == 0;
    memcpy(out, e->statuses, bytes * (size_t)(all ? e->workers : 1));
    for (int32_t r = 1; e->combine != NULL && r < e->workers; r++)
        e->combine(out, e->statuses + (size_t)r * bytes);
    return PL_OK;
}

static void mpi_abort(pl_collective *c, const char *why)
{
    engine *e = engine_of(c);
    pl_mutex_lock(&e->lock);
    if (e->world != NULL && e->failed.status == PL_OK) {
        send_all(e, NOTE_FAILED, why);
        (void)fail(e, PL_FAIL(PL_CLOSED, "%s", why));
    }
    pl_mutex_unlock(&e->lock);
}

static pl_collective_view mpi_look(pl_collective *c)
{
    pl_collective_view view = ((const engine *)c)->view;
    view.sent_messages = view.received_messages = -1; /* not counted */
    return view;
}

static void mpi_free(pl_collective *c)
{
    engine *e = engine_of(c);
    pl_mutex_lock(&e->lock);
    e->leaving = true;
    bool hangs = e->tender != NULL && !e->joined;
    pl_cond_broadcast(&e->changed);
    pl_mutex_unlock(&e->lock);
    if (hangs) /* stuck in MPI_Init: the tender ends with the process */
        return;
    if (pl_thread_join(e->tender) != PL_OK)
        pl_log(PL_LOG_WARN, "MPI: %s", pl_error_message());
    /* The library stays loaded: MPI may have threads and handlers of its own
     * that end with the process. */
    pl_cond_close(&e->changed);
    pl_mutex_close(&e->lock);
    pl_mem_free(e->memory);
    pl_mem_free(e->hosts);
    pl_mem_free(e->lives);
    pl_mem_free(e->statuses);
    pl_mem_free(e);
}

static const pl_collective_ops ops = {
    .name = "mpi",
    .cut_matters = true,
    .join = mpi_join,
    .memory = mpi_memory,
    .start = mpi_start,
    .wait = mpi_wait,
    .quiet = mpi_quiet,
    .offer = mpi_offer,
    .exchange = mpi_exchange,
    .abort = mpi_abort,
    .look = mpi_look,
    .free = mpi_free,
};

/* --- loading ---------------------------------------------------------- */

/* Next to the program, in the build tree; or in ../lib/paceline, as installed;
 * or, for another program that is linked to the library, in the library's run
 * path. */
static pl_status find_module(char *path, size_t room)
{
    char program[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    if (length < 0)
        return PL_FAIL(PL_IO, "cannot read /proc/self/exe");
    program[length] = '\0';
    char *slash = strrchr(program, '/');
    if (slash != NULL)
        *slash = '\0';
    snprintf(path, room, "%s/paceline-mpi.so", program);
    if (access(path, R_OK) != 0)
        snprintf(path, room, "%s/../lib/paceline/paceline-mpi.so", program);
    if (access(path, R_OK) != 0)
        snprintf(path, room, "paceline-mpi.so");
    return PL_OK;
}

static pl_status load(engine *e, const char *module)
{
    char path[PATH_MAX + 64];
    if (module == NULL)
        PL_TRY(find_module(path, sizeof path));
    /* If ranks outnumber cores, Open MPI must yield while it waits. */
    setenv("OMPI_MCA_mpi_yield_when_idle", "1", 0);
    /* MPI's own plugins look up its symbols: they must be global. */
    e->library = dlopen(module != NULL ? module : path, RTLD_NOW | RTLD_GLOBAL);
    if (e->library == NULL)
        return PL_FAIL(PL_NOTFOUND,
                       "the engine mpi cannot be loaded (%s); install MPI "
                       "(Debian: openmpi-bin), or use --engine ring",
                       dlerror());
    pl_mpi_table_fn *table;
    *(void **)&table = dlsym(e->library, PL_MPI_SYMBOL);
    e->mpi = table != NULL ? table() : NULL;
    if (e->mpi == NULL || e->mpi->version != PL_MPI_TABLE)
        return PL_FAIL(PL_UNSUPPORTED,
                       "%s belongs to another version of paceline; install "
                       "both from one build",
                       module != NULL ? module : path);
    return PL_OK;
}

pl_status pl_mpi_check(void)
{
    engine e = { .library = NULL };
    pl_status status = load(&e, NULL);
    if (e.library != NULL)
        dlclose(e.library);
    return status;
}

static pl_status build(engine *e, const pl_mpi_opts *opts)
{
    size_t workers = (size_t)opts->workers;
    PL_TRY(PL_NEW(e->hosts, workers));
    PL_TRY(PL_NEW(e->lives, workers));
    PL_TRY(PL_NEW(e->statuses, workers * PL_COLLECTIVE_BYTES_MOST));
    PL_TRY(PL_NEW_ALIGNED(e->memory, (size_t)opts->floats));
    for (size_t rank = 0; rank < workers; rank++)
        snprintf(e->hosts[rank], HOST_BYTES, "its host"); /* until known */
    return load(e, opts->module);
}

pl_status pl_mpi_new(pl_collective **out, const pl_mpi_opts *opts)
{
    engine *e;
    PL_TRY(PL_NEW(e, 1));
    e->base.ops = &ops;
    e->workers = opts->workers;
    e->heartbeat_ms =
        opts->heartbeat_ms > 0 ? opts->heartbeat_ms : HEARTBEAT_MS;
    e->join_ms = opts->join_ms > 0 ? opts->join_ms : JOIN_MS;
    pl_mutex_init(&e->lock);
    pl_cond_init(&e->changed);
    pl_status status = build(e, opts);
    if (status != PL_OK) {
        pl_error failed;
        pl_error_save(&failed, status);
        mpi_free(&e->base);
        return pl_error_raise(&failed);
    }
    *out = &e->base;
    return PL_OK;
}

/* --- the launcher ----------------------------------------------------- */

static bool number_of(const char *name, int32_t *out)
{
    const char *text = getenv(name);
    char *end;
    if (text == NULL || *text == '\0')
        return false;
    long value = strtol(text, &end, 10);
    if (*end != '\0' || value < 0 || value > INT32_MAX)
        return false;
    *out = (int32_t)value;
    return true;
}

bool pl_mpi_launched(pl_mpi_place *out)
{
    static const struct {
        const char *rank, *size, *local;
    } launchers[] = {
        { "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
          "OMPI_COMM_WORLD_LOCAL_SIZE" },              /* Open MPI */
        { "PMI_RANK", "PMI_SIZE", "MPI_LOCALNRANKS" }, /* MPICH, Intel */
        { "PMIX_RANK", "SLURM_NTASKS", "SLURM_NTASKS_PER_NODE" }, /* srun */
    };
    for (size_t i = 0; i < sizeof launchers / sizeof *launchers; i++) {
        if (!number_of(launchers[i].rank, &out->rank) ||
            !number_of(launchers[i].size, &out->size))
            continue;
        if (!number_of(launchers[i].local, &out->local) || out->local < 1)
            out->local = out->size;
        return out->rank < out->size;
    }
    return false;
}
