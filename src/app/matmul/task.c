/* task.c - one worker of a matrix product: finds its rank, addresses and keys,
 * whether it was started by hand, by the supervisor or by a launcher, and
 * computes. */
#include "app/matmul/matmul.h"
#include "app/train/interrupt.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/thread.h"
#include "job/supervise/control.h"
#include "matmul/worker.h"
#include "net/address.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/prctl.h>
#include <unistd.h>

#define ANY_PORT     "127.0.0.1:0"
#define JOIN_LOCAL_S 60
#define JOIN_HAND_S  600
/* Ports for workers of a launcher: below the ephemeral ports of the system. */
#define PORT_FIRST 20000
#define PORT_COUNT 10000

/* One worker and its settings. */
typedef struct task {
    const pl_matmul_command *command;
    int32_t worker;
    pl_control *control; /* NULL: not supervised */
    const atomic_bool *interrupt;
    pl_cluster learned;     /* from the supervisor */
    char **ports;           /* [workers]; for a launcher on one host */
    char *const *addresses; /* [workers]; NULL: to be learned */
    pl_secret secret;
    bool has_secret;
    char *secret_file; /* shared by a launcher's ranks; NULL: none */
    int64_t join_ms;
} task;

static int number_of(const char *name)
{
    const char *text = getenv(name);
    return text == NULL || text[0] < '0' || text[0] > '9' ? -1 : atoi(text);
}

bool pl_matmul_rank_find(pl_matmul_rank *out)
{
    static const struct {
        const char *rank, *size, *local;
    } launchers[] = {
        { "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
          "OMPI_COMM_WORLD_LOCAL_SIZE" },
        { "PMI_RANK", "PMI_SIZE", "MPI_LOCALNRANKS" },
    };
    for (size_t i = 0; i < sizeof launchers / sizeof *launchers; i++) {
        int rank = number_of(launchers[i].rank);
        int size = number_of(launchers[i].size);
        if (rank < 0 || size < 1 || rank >= size)
            continue;
        *out = (pl_matmul_rank) { rank, size,
                                  number_of(launchers[i].local) == size };
        return true;
    }
    return false;
}

/* --- rank, addresses -------------------------------------------------- */

/* Workers of one launcher have the same parent, whose process id determines
 * their ports. */
static pl_status ports_of_launcher(task *t)
{
    int32_t workers = t->command->job.workers;
    PL_TRY(PL_NEW(t->ports, (size_t)workers));
    int32_t first =
        PORT_FIRST + (int32_t)((int64_t)getppid() * 61 % PORT_COUNT);
    for (int32_t w = 0; w < workers; w++)
        PL_TRY(pl_mem_format(&t->ports[w], "127.0.0.1:%d", first + w));
    t->addresses = t->ports;
    return PL_OK;
}

static pl_status place_in_cluster(task *t, bool launched,
                                  const pl_matmul_rank *rank)
{
    const pl_cluster *cluster = &t->command->cluster;
    pl_task id = { (pl_role)t->command->flags.role,
                   (int32_t)t->command->flags.index };
    if (t->command->has_task)
        id = t->command->task;
    else if (launched && t->command->flags.index == 0)
        id = pl_cluster_task(cluster, rank->rank);
    pl_status status = pl_cluster_check(cluster, id);
    if (status != PL_OK)
        return pl_context(status, "--role, --index");
    if (cluster->worker_address == NULL)
        return PL_FAIL(PL_USAGE, "%s gives the workers no addresses",
                       t->command->has_task ? "TF_CONFIG"
                                            : t->command->flags.cluster);
    t->worker = pl_cluster_worker(cluster, id);
    t->addresses = cluster->worker_address;
    return PL_OK;
}

static pl_status find_place(task *t)
{
    const pl_matmul_flags *flags = &t->command->flags;
    pl_matmul_rank rank = { 0 };
    bool launched = pl_matmul_rank_find(&rank);
    t->join_ms = 1000 * (flags->join_timeout > 0          ? flags->join_timeout
                         : flags->control > 0 || launched ? JOIN_LOCAL_S
                                                          : JOIN_HAND_S);
    t->worker = (int32_t)flags->index;
    if (flags->control > 0)
        return pl_control_new(&t->control, (int)flags->control);
    if (flags->cluster != NULL || t->command->has_task)
        return place_in_cluster(t, launched, &rank);
    t->worker = rank.rank;
    if (!rank.one_host)
        return PL_FAIL(PL_USAGE, "the launcher has started workers on several "
                                 "hosts; give their addresses in --cluster "
                                 "FILE");
    return ports_of_launcher(t);
}

/* --- the secret ------------------------------------------------------- */

static const char *find_open(const task *t)
{
    for (int32_t w = 0; w < t->command->job.workers; w++) {
        pl_address address;
        if (pl_address_split(&address, t->addresses[w]) != PL_OK ||
            pl_address_resolve(&address) != PL_OK ||
            !pl_address_is_loopback(&address))
            return t->addresses[w];
    }
    return NULL;
}

/* Start time of the launcher in kernel ticks: with its process id, this
 * identifies the process uniquely. */
static long long start_of_launcher(void)
{
    char path[40], text[1024];
    snprintf(path, sizeof path, "/proc/%ld/stat", (long)getppid());
    FILE *file = fopen(path, "r");
    size_t got = file != NULL ? fread(text, 1, sizeof text - 1, file) : 0;
    if (file != NULL)
        fclose(file);
    text[got] = '\0';
    const char *at = strrchr(text, ')'); /* field 2; the start is field 22 */
    for (int field = 2; at != NULL && field < 22; field++)
        at = strchr(at + 1, ' ');
    return at != NULL ? atoll(at + 1) : 0;
}

/* The ranks of one launcher on one host create their own secret: the first rank
 * writes a key file, which only its user can read, under a name derived from
 * the launcher.  link() makes it appear complete. */
static pl_status share_secret(task *t)
{
    const char *base = getenv("TMPDIR");
    char *own;
    PL_TRY(pl_mem_format(&t->secret_file, "%s/paceline-matmul-%ld-%ld-%lld.key",
                         base != NULL && base[0] != '\0' ? base : "/tmp",
                         (long)getuid(), (long)getppid(), start_of_launcher()));
    PL_TRY(pl_mem_format(&own, "%s.%ld", t->secret_file, (long)getpid()));
    pl_status status = pl_secret_make(&t->secret);
    if (status == PL_OK)
        status = pl_secret_write(&t->secret, own);
    if (status == PL_OK) {
        if (link(own, t->secret_file) != 0 && errno != EEXIST)
            status =
                PL_FAIL(PL_IO, "make %s: %s", t->secret_file, strerror(errno));
        unlink(own);
    }
    pl_mem_free(own);
    if (status == PL_OK)
        status = pl_secret_read(&t->secret, t->secret_file);
    return status == PL_OK ? PL_OK : pl_context(status, "the ranks' secret");
}

/* After all ranks have joined they have all read it. */
static void drop_secret_file(task *t)
{
    if (t->secret_file != NULL)
        unlink(t->secret_file);
    pl_mem_free(t->secret_file);
    t->secret_file = NULL;
}

static pl_status do_without(const task *t)
{
    const char *open = find_open(t);
    if (open == NULL)
        pl_log(PL_LOG_INFO, "no keys: any user of this host can join or "
                            "disturb the job; see --keys");
    else if (t->command->flags.insecure)
        pl_log(PL_LOG_WARN,
               "--insecure: anyone who can reach %s can read and change this "
               "product",
               open);
    else
        return PL_FAIL(PL_USAGE,
                       "%s can be reached from other hosts, so the job needs "
                       "keys: run `%s keys -o job.key`, copy the file to all "
                       "hosts and start each worker with --keys job.key (or "
                       "with --insecure, where everybody on the network is "
                       "trusted)",
                       open, t->command->app->program);
    return PL_OK;
}

static pl_status find_secret(task *t)
{
    const pl_matmul_flags *flags = &t->command->flags;
    const char *file =
        flags->keys != NULL ? flags->keys : getenv("PACELINE_KEYS");
    t->has_secret = true;
    if (t->control != NULL)
        return pl_control_secret(
            t->control, &t->secret,
            pl_deadline_in_ms(pl_clock_real(), t->join_ms));
    if (file != NULL && file[0] != '\0' && !flags->insecure) {
        pl_status status = pl_secret_read(&t->secret, file);
        return status == PL_OK || status == PL_NOMEM
                   ? status
                   : pl_context(PL_USAGE, "--keys");
    }
    if (t->ports != NULL && !flags->insecure)
        return share_secret(t);
    t->has_secret = false;
    return do_without(t);
}

/* --- work ------------------------------------------------------------- */

static pl_status learn_addresses(void *context, const char *address,
                                 char *const **addresses)
{
    task *t = context;
    PL_TRY(pl_control_address(t->control, address));
    PL_TRY(pl_control_cluster(t->control, &t->learned,
                              pl_deadline_in_ms(pl_clock_real(), t->join_ms)));
    if (t->learned.worker_address == NULL ||
        t->learned.workers != t->command->job.workers)
        return PL_FAIL(PL_PEER,
                       "the supervisor sent %d workers, expected %d "
                       "with addresses",
                       t->learned.workers, t->command->job.workers);
    *addresses = t->learned.worker_address;
    return PL_OK;
}

static bool is_ended(void *context)
{
    task *t = context;
    return atomic_load(t->interrupt) ||
           (t->control != NULL && pl_control_ended(t->control));
}

/* The number of workers that share this host's cores. */
static int32_t workers_here(const task *t)
{
    int32_t workers = t->command->job.workers, here = 0;
    if (t->addresses == NULL)
        return workers;
    const char *own = t->addresses[t->worker];
    size_t host = (size_t)(strrchr(own, ':') - own) + 1;
    for (int32_t w = 0; w < workers; w++)
        here += strncasecmp(t->addresses[w], own, host) == 0;
    return here > 0 ? here : 1;
}

static int threads_of(const task *t)
{
    int64_t given = t->command->flags.threads;
    int threads = given > 0 ? (int)given : pl_thread_cores() / workers_here(t);
    return threads > 0 ? threads : 1;
}

static pl_status check_memory(const task *t)
{
    pl_matmul_plan plan;
    char whose[32];
    if (t->control != NULL)
        return PL_OK; /* the supervisor has checked */
    PL_TRY(pl_matmul_plan_init(&plan, &t->command->placement, t->worker));
    int64_t bytes =
        pl_matmul_plan_bytes(&plan, &t->command->placement, t->worker);
    pl_matmul_plan_close(&plan);
    snprintf(whose, sizeof whose, "worker %d", t->worker);
    return pl_matmul_memory(t->command, bytes, whose);
}

static pl_status run(task *t)
{
    pl_matmul_result result;
    PL_TRY(find_place(t));
    PL_TRY(find_secret(t));
    PL_TRY(check_memory(t));
    t->interrupt = pl_interrupt_catch();
    PL_TRY(pl_matmul_work(
        &result,
        &(pl_matmul_opts) {
            .placement = &t->command->placement,
            .placed_by = t->command->flags.placement,
            .worker = t->worker,
            .threads = threads_of(t),
            .address =
                t->addresses != NULL ? t->addresses[t->worker] : ANY_PORT,
            .addresses = t->addresses,
            .secret = t->has_secret ? &t->secret : NULL,
            .transport = pl_transport_chosen(t->command->flags.transport),
            .join_ms = t->join_ms,
            .meet = learn_addresses,
            .ended = is_ended,
            .context = t,
        }));
    pl_status status = PL_OK;
    if (result.worker_count > 0)
        status = pl_matmul_print(t->command, &result);
    pl_fields_close(&pl_matmul_result_fields, &result);
    return status;
}

pl_status pl_matmul_task(const pl_matmul_command *command)
{
    task t = { .command = command };
    if (command->flags.control > 0) /* otherwise its name is "exe" */
        prctl(PR_SET_NAME, command->app->program);
    pl_status status = run(&t);
    for (int32_t w = 0; t.ports != NULL && w < command->job.workers; w++)
        pl_mem_free(t.ports[w]);
    pl_mem_free(t.ports);
    drop_secret_file(&t);
    pl_cluster_close(&t.learned);
    pl_keys_wipe(&t.secret, sizeof t.secret);
    pl_control_free(t.control);
    return status;
}
