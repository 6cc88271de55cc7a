/* Creates, finds and locks a run folder, and writes run.json.  A folder of
 * another job is refused. */
#include "app/run/run_folder.h"

#include "base/clock.h"
#include "base/file/file.h"
#include "base/hash/sha256.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/thread.h"
#include "tensor/shape.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define TRIES 100 /* folders of one second before giving up */

/* Create runs/20261115-041502-softmax (local time), with "-2" on a clash, so
 * that programs started at the same time get separate folders. */
static pl_status make_default(char **out, const char *model)
{
    PL_TRY(pl_file_make_folder("runs"));
    time_t now = (time_t)(pl_clock_wall_ns() / 1000000000);
    struct tm parts;
    char stamp[32];
    localtime_r(&now, &parts);
    strftime(stamp, sizeof stamp, "%Y%m%d-%H%M%S", &parts);
    for (int n = 1; n <= TRIES; n++) {
        char suffix[16] = "";
        if (n > 1)
            snprintf(suffix, sizeof suffix, "-%d", n);
        PL_TRY(pl_mem_format(out, "runs/%s-%s%s", stamp, model, suffix));
        if (mkdir(*out, 0777) == 0)
            return PL_OK;
        if (errno != EEXIST)
            return PL_FAIL(PL_IO, "make folder %s: %s", *out, strerror(errno));
        pl_mem_free(*out);
        *out = NULL;
    }
    return PL_FAIL(PL_IO, "runs/%s-%s: already exists %d times; give --run DIR",
                   stamp, model, TRIES);
}

static pl_status check_unused(const char *path)
{
    char *record;
    PL_TRY(pl_file_join(&record, path, "run.json"));
    bool used = pl_file_exists(record);
    pl_mem_free(record);
    if (used)
        return PL_FAIL(PL_USAGE,
                       "%s already holds a run; add --resume to continue "
                       "it, or choose another --run",
                       path);
    return PL_OK;
}

static pl_status make_given(char **out, const pl_train_options *train)
{
    PL_TRY(pl_mem_copy_text(out, train->run));
    return pl_file_make_folder(*out);
}

/* The lock ends with the process, however that ends. */
static pl_status lock_folder(pl_run_folder *folder)
{
    folder->lock = open(folder->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder->lock < 0)
        return PL_FAIL(PL_IO, "open %s: %s", folder->path, strerror(errno));
    if (flock(folder->lock, LOCK_EX | LOCK_NB) == 0)
        return PL_OK;
    if (errno == EWOULDBLOCK)
        return PL_FAIL(PL_USAGE,
                       "another process is training in %s; wait for it, or "
                       "choose another --run",
                       folder->path);
    /* Some network file systems have no locks. */
    pl_log(PL_LOG_DEBUG, "lock %s: %s", folder->path, strerror(errno));
    return PL_OK;
}

pl_status pl_run_folder_init(pl_run_folder *folder, const pl_options *options,
                             atomic_bool *interrupt)
{
    *folder = (pl_run_folder) { .lock = -1 };
    pl_status status;
    if (options->train.run != NULL)
        PL_TRY_OUT(status, make_given(&folder->path, &options->train));
    else
        PL_TRY_OUT(status, make_default(&folder->path, options->model->name));
    bool supervised = options->train.control > 0;
    if (!supervised)
        PL_TRY_OUT(status, lock_folder(folder));
    if (!supervised && !options->train.resume)
        PL_TRY_OUT(status, check_unused(folder->path));
    PL_TRY_OUT(status,
               pl_file_join(&folder->checkpoints, folder->path, "checkpoints"));
    PL_TRY_OUT(status, pl_file_make_folder(folder->checkpoints));
    /* A task that launch or mpirun started leaves the socket to its starter. */
    if (!supervised)
        folder->stop = pl_interrupt_listen(folder->path, interrupt,
                                           options->train.role >= 0 ||
                                               PL_GIVEN(options, restarted));
    if (!supervised)
        PL_TRY_OUT(status,
                   pl_metrics_server_start(&folder->metrics, &options->train,
                                           folder->path));
out:
    if (status != PL_OK)
        pl_run_folder_close(folder);
    return status == PL_OK || status == PL_USAGE
               ? status
               : pl_context(status, "run folder");
}

void pl_run_folder_close(pl_run_folder *folder)
{
    pl_metrics_server_stop(folder->metrics);
    pl_stop_free(folder->stop);
    if (folder->lock >= 0)
        close(folder->lock);
    pl_mem_free(folder->path);
    pl_mem_free(folder->checkpoints);
    *folder = (pl_run_folder) { .lock = -1 };
}

typedef enum folder_kind {
    FOLDER_OURS,  /* the run of this job */
    FOLDER_EMPTY, /* no run: it is empty or has no run.json */
    FOLDER_OTHER, /* the run of another job or user */
} folder_kind;

/* A path from a peer is not trusted: only a regular run.json of this user
 * counts. */
static folder_kind look_at_folder(const char *path, uint64_t job)
{
    char *record;
    pl_run_record run = { 0 };
    struct stat info;
    if (pl_file_join(&record, path, "run.json") != PL_OK)
        return FOLDER_OTHER;
    bool there = lstat(record, &info) == 0;
    bool plain = there && S_ISREG(info.st_mode) && info.st_uid == geteuid();
    pl_mem_free(record);
    if (!there)
        return FOLDER_EMPTY;
    bool ours = plain && job != 0 && pl_run_record_read(&run, path) == PL_OK &&
                run.job == job;
    pl_run_record_close(&run);
    return ours ? FOLDER_OURS : FOLDER_OTHER;
}

static pl_status make_local(char **out, const pl_task_folder_opts *opts)
{
    char *name;
    PL_TRY(pl_mem_format(&name, "%s-%s-%d", opts->options->model->name,
                         pl_role_text(opts->task.role), opts->task.index));
    pl_status status = make_default(out, name);
    pl_mem_free(name);
    return status;
}

pl_status pl_run_folder_of_task(char **out, const pl_task_folder_opts *opts)
{
    const char *given = opts->options->train.run, *chief = opts->chief;
    const char *role = pl_role_text(opts->task.role);
    char host[256] = "this host";
    if (opts->options->train.control > 0 ||
        opts->options->train.launched_run != NULL)
        return pl_mem_copy_text(out, given);
    gethostname(host, sizeof host - 1);
    folder_kind kind =
        given != NULL ? look_at_folder(given, opts->job) : FOLDER_OTHER;
    if (kind == FOLDER_EMPTY) {
        pl_log(PL_LOG_WARN,
               "%s %d: %s is not the chief's run folder; the records of this "
               "task are in %s on %s",
               role, opts->task.index, given, given, host);
        return pl_mem_copy_text(out, given);
    }
    if (kind == FOLDER_OURS)
        return pl_mem_copy_text(out, given);
    if (given != NULL)
        pl_log(PL_LOG_WARN,
               "%s %d: --run %s holds the run of another job and is not used",
               role, opts->task.index, given);
    if (given == NULL && chief != NULL && chief[0] == '/' &&
        look_at_folder(chief, opts->job) == FOLDER_OURS) {
        pl_log(PL_LOG_INFO, "%s %d: records are in the chief's run folder %s",
               role, opts->task.index, chief);
        return pl_mem_copy_text(out, chief);
    }
    PL_TRY(make_local(out, opts));
    pl_log(PL_LOG_WARN,
           "%s %d: the chief's run folder is not visible from here; the "
           "records of this task are in %s on %s",
           role, opts->task.index, *out, host);
    return PL_OK;
}

bool pl_run_folder_is(const char *path, uint64_t job)
{
    return look_at_folder(path, job) == FOLDER_OURS;
}

pl_status pl_run_folder_examples(const pl_run_record *run, pl_shape *example,
                                 int32_t *classes)
{
    *example = PL_SCALAR;
    *classes = 0;
    if (run->example_rank == 0)
        return PL_OK;
    if (run->example_rank >= PL_MAX_RANK)
        return PL_FAIL(PL_FORMAT, "example: %zu sizes, expected 1 to %d",
                       run->example_rank, PL_MAX_RANK - 1);
    if (run->classes == 0)
        return PL_FAIL(PL_FORMAT, "classes: expected at least 1");
    pl_shape shape = { .rank = (int)run->example_rank };
    for (size_t i = 0; i < run->example_rank; i++)
        shape.dim[i] = run->example[i].size;
    PL_TRY(pl_shape_check(shape));
    *example = shape;
    *classes = run->classes;
    return PL_OK;
}

/* The results of the training that is being resumed. */
static pl_status remove_results(const pl_run_folder *folder)
{
    static const char *const names[] = { "summary.json", "confusion.json" };
    pl_status status = PL_OK;
    for (size_t i = 0; i < 2 && status == PL_OK; i++) {
        char *path;
        PL_TRY(pl_file_join(&path, folder->path, names[i]));
        status = pl_file_remove_all(path);
        pl_mem_free(path);
    }
    return status;
}

/* A resumed run keeps its job number, so that tasks that are still running
 * recognize it. */
static pl_status find_job(pl_run_folder *folder)
{
    pl_run_record before;
    if (pl_run_record_read(&before, folder->path) == PL_OK) {
        folder->job = before.job;
        pl_run_record_close(&before);
    }
    while (folder->job == 0)
        if (getrandom(&folder->job, sizeof folder->job, 0) !=
            sizeof folder->job)
            return PL_FAIL(PL_IO, "getrandom: %s", strerror(errno));
    return PL_OK;
}

/* The file may have been changed since it was read. */
static pl_status check_same(const pl_model_file *file, const pl_map *map)
{
    pl_sha256 sha;
    uint8_t digest[PL_SHA256_BYTES];
    char text[PL_SHA256_TEXT];
    pl_sha256_init(&sha);
    pl_sha256_update(&sha, map->data, map->bytes);
    pl_sha256_final(&sha, digest);
    if (strcmp(pl_sha256_text(digest, text), file->sha256) == 0)
        return PL_OK;
    return PL_FAIL(PL_IO,
                   "%s changed after it was read; do not change it while a "
                   "training starts",
                   file->path);
}

/* Keep a copy of the model's file: eval, predict and export build the network
 * from it, even if the original is gone. */
static pl_status keep_model(const pl_run_folder *folder, const pl_model *model)
{
    const pl_model_file *file = model->file;
    char *path;
    pl_map map;
    if (file == NULL)
        return PL_OK;
    PL_TRY(pl_file_join(&path, folder->path, PL_MODEL_FILE));
    pl_status status = pl_map_read(&map, file->path, SIZE_MAX);
    if (status == PL_OK) {
        status = check_same(file, &map);
        if (status == PL_OK)
            status = pl_file_replace(path, map.data, map.bytes);
        pl_map_close(&map);
    }
    pl_mem_free(path);
    return status;
}

pl_status pl_run_folder_record(pl_run_folder *folder, const pl_job *job)
{
    char started[32], host[256] = "";
    time_t now = (time_t)(pl_clock_wall_ns() / 1000000000);
    struct tm parts;
    pl_json *args;
    pl_run_size sizes[PL_MAX_RANK];
    gmtime_r(&now, &parts);
    strftime(started, sizeof started, "%Y-%m-%dT%H:%M:%SZ", &parts);
    gethostname(host, sizeof host - 1);
    for (int d = 0; d < job->example.rank; d++)
        sizes[d].size = job->example.dim[d];

    PL_TRY(find_job(folder));
    PL_TRY(pl_options_record(job->options, PL_OPTIONS_RECORDED, &args));
    pl_run_record run = {
        .format = PL_RUN_FORMAT,
        .paceline = pl_version(),
        .model = job->options->model->name,
        .started = started,
        .job = folder->job,
        .args = args,
        .example = sizes,
        .example_rank = (size_t)job->example.rank,
        .numbering = job->numbering,
        .input = job->encoding.learned,
        .classes = job->classes,
        .end_step = job->schedule.run_steps,
        .has_machine = true,
        .machine = { .host = host,
                     .kernels = job->kernels->name,
                     .cores = pl_thread_cores() },
    };
    pl_status status = remove_results(folder);
    if (status == PL_OK)
        status = keep_model(folder, job->options->model);
    if (status == PL_OK)
        status = pl_run_folder_write(folder, "run.json", &pl_run_record_fields,
                                     &run);
    pl_json_free(args);
    return status;
}

pl_status pl_run_folder_word(const char *path, char **out)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyz"
                                "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./+";
    if (path[strspn(path, plain)] == '\0')
        return pl_mem_copy_text(out, path);
    char *word;
    PL_TRY(PL_NEW(word, 4 * strlen(path) + 3));
    char *at = stpcpy(word, "'");
    for (; *path != '\0'; path++)
        if (*path == '\'')
            at = stpcpy(at, "'\\''");
        else
            *at++ = *path;
    stpcpy(at, "'");
    *out = word;
    return PL_OK;
}

pl_status pl_run_folder_write(const pl_run_folder *folder, const char *name,
                              const pl_fields *fields, const void *of)
{
    char *path = NULL, *text = NULL;
    pl_status status;
    PL_TRY_OUT(status, pl_file_join(&path, folder->path, name));
    PL_TRY_OUT(status, pl_fields_text(fields, of, 2, &text));
    status = pl_file_replace(path, text, strlen(text));
out:
    pl_mem_free(path);
    pl_mem_free(text);
    return status;
}

pl_status pl_run_folder_end(const pl_run_folder *folder,
                            const pl_summary *summary,
                            const pl_confusion *confusion)
{
    if (confusion != NULL && confusion->classes > 0 &&
        confusion->step == summary->steps)
        PL_TRY(pl_run_folder_write(folder, "confusion.json",
                                   &pl_confusion_fields, confusion));
    return pl_run_folder_write(folder, "summary.json", &pl_summary_fields,
                               summary);
}
