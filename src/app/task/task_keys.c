/* task_keys.c - decides which secret a task uses, and refuses to run without
 * one beyond loopback. */
#include "app/task/task_keys.h"

#include "base/clock.h"
#include "base/log.h"
#include "net/address.h"

/* The tasks that listen: the servers or, if there are none, the workers. */
static char *const *listeners(const pl_cluster *cluster, int32_t *count)
{
    *count = cluster->ps > 0 ? cluster->ps : cluster->workers;
    return cluster->ps > 0 ? cluster->ps_address : cluster->worker_address;
}

/* The first listener that other hosts can reach; -1: none.  A name that this
 * host cannot resolve belongs to another host. */
static pl_status find_open(const pl_cluster *cluster, int32_t *out)
{
    int32_t count;
    char *const *addresses = listeners(cluster, &count);
    *out = -1;
    for (int32_t i = 0; i < count && *out < 0; i++) {
        pl_address address;
        PL_TRY(pl_address_split(&address, addresses[i]));
        if (pl_address_resolve(&address) != PL_OK ||
            !pl_address_is_loopback(&address))
            *out = i;
    }
    return PL_OK;
}

static pl_status do_without(const pl_task_keys_opts *opts)
{
    int32_t open, count;
    char *const *addresses = listeners(opts->cluster, &count);
    PL_TRY(find_open(opts->cluster, &open));
    if (open < 0) {
        pl_log(PL_LOG_INFO, "no keys: only tasks of this user on this host can "
                            "join the job; see --keys");
        return PL_OK;
    }
    if (!opts->options->train.insecure)
        return PL_FAIL(PL_USAGE,
                       "%s %d at %s can be reached from other hosts, so the "
                       "job needs keys: run `%s keys -o job.key`, copy the "
                       "file to all hosts and start each task with --keys "
                       "job.key (or with --insecure, where everybody on the "
                       "network is trusted)",
                       opts->cluster->ps > 0 ? "ps" : "worker", open,
                       addresses[open], opts->program);
    pl_log(PL_LOG_WARN,
           "--insecure: anyone who can reach %s can read and change this "
           "training",
           addresses[open]);
    return PL_OK;
}

/* An unusable file is an error in the command. */
static pl_status read_file(pl_secret *out, const char *path, const char *where)
{
    pl_status status = pl_secret_read(out, path);
    if (status == PL_OK || status == PL_NOMEM)
        return status;
    return pl_context(PL_USAGE, "%s", where);
}

pl_status pl_task_keys(pl_job_keys *out, bool *has,
                       const pl_task_keys_opts *opts)
{
    const pl_train_options *train = &opts->options->train;
    const char *named = opts->environment;
    *out = (pl_job_keys) { .workers = opts->cluster->workers,
                           .ps = opts->cluster->ps,
                           .evaluator = opts->cluster->evaluator };
    *has = true;
    if (train->strategy == PL_TRAIN_STRATEGY_ALLREDUCE &&
        train->engine == PL_TRAIN_ENGINE_MPI) {
        *has = false; /* the launcher secures MPI's network */
        return PL_OK;
    }
    if (opts->control != NULL)
        return pl_control_secret(
            opts->control, &out->secret,
            pl_deadline_in_ms(pl_clock_real(), train->join_timeout * 1000));
    if (train->keys != NULL)
        return read_file(&out->secret, train->keys, "--keys");
    if (named != NULL && named[0] != '\0' && !train->insecure)
        return read_file(&out->secret, named, "PACELINE_KEYS");
    *has = false;
    return do_without(opts);
}
