/* The flags of a job of several processes. */
#include "app/options/options_priv.h"

#include "job/cluster/cluster.h"

#define FIELD(f) PL_OPTION_FIELD(f)
#define DAY_S    86400

const pl_param pl_options_cluster[] = {
    { "strategy", PL_PARAM_CHOICE, FIELD(strategy), NULL, 0, 0,
      "single|ps|allreduce", NULL,
      "who holds the parameters (default: ps if there is a ps, allreduce if "
      "there are several workers, else single)" },
    { "mode", PL_PARAM_CHOICE, FIELD(mode), "sync", 0, 0, "sync|async|ssp",
      NULL,
      "of ps: combine a gradient of each worker, apply each as it comes, or "
      "that with a limit of --staleness" },
    { "workers", PL_PARAM_INT, FIELD(workers), NULL, 1, PL_CLUSTER_WORKERS_MAX,
      NULL, "N", "workers to start on this machine, with the chief" },
    { "ps", PL_PARAM_INT, FIELD(ps), NULL, 0, PL_CLUSTER_PS_MAX, NULL, "N",
      "parameter servers to start on this machine" },
    { "cluster", PL_PARAM_TEXT, FIELD(cluster), NULL, 0, 0, NULL, "FILE",
      "tasks and their addresses, on any machines, as JSON" },
    { "deploy", PL_PARAM_TEXT, FIELD(deploy), NULL, 0, 0, NULL, "NAME",
      "which entry of --cluster, where it holds several" },
    { "role", PL_PARAM_CHOICE, FIELD(role), NULL, 0, 0,
      "chief|worker|ps|evaluator", NULL, "which task of the cluster this is" },
    { "index", PL_PARAM_INT, FIELD(index), NULL, 0, PL_CLUSTER_WORKERS_MAX - 1,
      NULL, "N", "the number of that task in its role" },
    { "replicas-to-aggregate", PL_PARAM_INT, FIELD(replicas_to_aggregate), NULL,
      1, PL_CLUSTER_WORKERS_MAX, NULL, "N",
      "sync: gradients that make an update; the slowest workers' are dropped "
      "(default: one of each worker)" },
    { "staleness", PL_PARAM_INT, FIELD(staleness), "0", 0, 1e9, NULL, "N",
      "ssp: steps a worker may be ahead of the slowest" },
    { "on-worker-loss", PL_PARAM_CHOICE, FIELD(on_worker_loss), NULL, 0, 0,
      "wait|continue|abort", NULL,
      "what the others do when a worker is lost (default: wait in sync and "
      "allreduce, else continue)" },
    { "join-timeout", PL_PARAM_INT, FIELD(join_timeout), NULL, 1, DAY_S, NULL,
      "S",
      "seconds until all must be there (default: 60, or 600 when tasks are "
      "started by hand)" },
    { "rejoin-timeout", PL_PARAM_INT, FIELD(rejoin_timeout), "60", 1, DAY_S,
      NULL, "S", "seconds to wait for a lost worker or server" },
    { "heartbeat-timeout", PL_PARAM_REAL, FIELD(heartbeat_timeout), "5", 0.1,
      DAY_S, NULL, "S", "seconds of silence after which a task is lost" },
    { "transport", PL_PARAM_CHOICE, FIELD(transport), "auto", 0, 0,
      "auto|tcp|shm", NULL,
      "how tasks talk; auto: shared memory on one machine" },
    { "eval-on", PL_PARAM_CHOICE, FIELD(eval_on), "chief", 0, 0,
      "chief|workers", NULL, "who tests" },
    { "evaluator", PL_PARAM_FLAG, FIELD(evaluator), NULL, 0, 0, NULL, NULL,
      "also start a process that only tests" },
    { "restarts", PL_PARAM_INT, FIELD(restarts), "5", 0, 1e6, NULL, "N",
      "times a worker or server on this machine (mpi: the whole job) is "
      "started again" },
    { "chaos", PL_PARAM_REAL, FIELD(chaos), "0", 0, 1000, NULL, "RATE",
      "faults a second: tasks on this machine are killed and frozen at random "
      "moments, chosen by --seed, while they train; not counted by "
      "--restarts" },
    { "engine", PL_PARAM_CHOICE, FIELD(engine), NULL, 0, 0, "mpi|ring", NULL,
      "allreduce: who moves the sums (default: mpi; the ring where there is no "
      "mpirun, and for workers started by hand)" },
    { "bucket-bytes", PL_PARAM_INT, FIELD(bucket_bytes), NULL, 1024, 1e9, NULL,
      "N",
      "allreduce: bytes of gradients that are summed at once (default: "
      "measured at the start)" },
    { "min-workers", PL_PARAM_INT, FIELD(min_workers), NULL, 1,
      PL_CLUSTER_WORKERS_MAX, NULL, "N",
      "allreduce: start again with one worker less each time, down to N "
      "(default: always with all)" },
    { "keys", PL_PARAM_TEXT, FIELD(keys), NULL, 0, 0, NULL, "FILE",
      "the job's key file, of `keys -o FILE`; needed by tasks started by hand "
      "beyond loopback (default: what PACELINE_KEYS names)" },
    { "insecure", PL_PARAM_FLAG, FIELD(insecure), NULL, 0, 0, NULL, NULL,
      "start without keys beyond loopback: anybody there can read and change "
      "the training" },
    { "control", PL_PARAM_INT, FIELD(control), NULL, 3, 1e6, NULL, "FD",
      "set by who starts the tasks: the descriptor to talk to it" },
    { "restarted", PL_PARAM_INT, FIELD(restarted), "0", 0, 1e6, NULL, "N",
      "set by who starts the tasks: how often it has started them again" },
};

const size_t pl_options_cluster_count =
    sizeof pl_options_cluster / sizeof *pl_options_cluster;
