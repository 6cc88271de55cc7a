/* agent.c - the agent's commands on a host: checks a job's command line before
 * the job starts, listens and measures for `doctor`, and runs tasks. */
#include "job/hosts/agent.h"
#include "app/doctor/doctor.h"
#include "app/launch/launch.h"
#include "app/task/part.h"
#include "app/train/job.h"
#include "base/clock.h"
#include "base/file/file.h"
#include "base/mem.h"
#include "net/probe/probe.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FIRST_FLAG      3 /* of "paceline train MODEL ..." */
#define MEASURE_MS_MOST 60000

/* State for the replies. */
typedef struct agent {
    const pl_app *app;
    pl_probe *probe; /* with which other hosts measure the link; NULL: none */
} agent;

/* --- try: could the tasks work here? ---------------------------------- */

/* Open data and model as a task does. */
static pl_status open_job(pl_options *options, const pl_json *question)
{
    pl_part part;
    pl_job job;
    PL_TRY(pl_json_get_int(question, "workers", 1, PL_CLUSTER_WORKERS_MAX,
                           &options->train.workers));
    PL_TRY(pl_json_get_int(question, "ps", 0, PL_CLUSTER_PS_MAX,
                           &options->train.ps));
    if (options->train.engine < 0)
        options->train.engine = PL_TRAIN_ENGINE_RING;
    PL_TRY(pl_part_init(&part, options, NULL));
    pl_part_close(&part);
    PL_TRY(pl_options_resolve(options));
    PL_TRY(pl_job_init(&job, &(pl_job_opts) { .options = options }));
    pl_job_close(&job);
    return PL_OK;
}

static pl_status try_words(const pl_app *app, const pl_json *question,
                           char **words, int count)
{
    const pl_model *model;
    pl_options options;
    PL_TRY(pl_app_model(app, words[FIRST_FLAG - 1], &model));
    PL_TRY(pl_options_init(&options, model));
    pl_status status =
        pl_options_parse(&options, count - FIRST_FLAG, words + FIRST_FLAG);
    if (status == PL_OK)
        status = open_job(&options, question);
    pl_options_close(&options);
    return status;
}

static pl_status copy_words(char **words, const pl_json *list)
{
    for (size_t i = 0; i < pl_json_length(list); i++) {
        const char *text;
        PL_TRY(pl_json_as_text(pl_json_at(list, i), "word", &text));
        PL_TRY(pl_mem_copy_text(&words[i], text));
    }
    return PL_OK;
}

static pl_status try_argv(const pl_app *app, const pl_json *question)
{
    const pl_json *list;
    char **words;
    PL_TRY(pl_json_get_array(question, "argv", &list));
    size_t count = pl_json_length(list);
    const char *command;
    if (count > 1 &&
        pl_json_as_text(pl_json_at(list, 1), "word", &command) == PL_OK &&
        strcmp(command, "matmul") == 0)
        return PL_OK; /* matmul reads no data; its workers check the memory */
    if (count < FIRST_FLAG)
        return PL_FAIL(PL_PEER, "a command of %zu arguments", count);
    PL_TRY(PL_NEW(words, count + 1));
    pl_status status = copy_words(words, list);
    if (status == PL_OK)
        status = try_words(app, question, words, (int)count);
    for (size_t i = 0; i < count; i++)
        pl_mem_free(words[i]);
    pl_mem_free(words);
    return status;
}

static pl_status answer_try(const pl_app *app, const pl_json *question)
{
    bool data;
    PL_TRY(pl_json_get_bool(question, "data", &data));
    return data ? try_argv(app, question) : PL_OK;
}

/* --- doctor ----------------------------------------------------------- */

static pl_status answer_listen(agent *a, const pl_json *question,
                               pl_json *reply)
{
    const char *address, *token;
    PL_TRY(pl_json_get_text(question, "address", &address));
    PL_TRY(pl_json_get_text(question, "token", &token));
    if (strlen(token) != PL_PROBE_TOKEN)
        return PL_FAIL(PL_PEER, "a token of %zu characters", strlen(token));
    pl_probe_free(a->probe);
    a->probe = NULL;
    PL_TRY(pl_probe_new(&a->probe, address, token));
    return pl_json_set_int(reply, "port", pl_probe_port(a->probe));
}

static pl_status answer_measure(const pl_json *question, pl_json *reply)
{
    const char *address, *token;
    int64_t ms;
    pl_probe_result result;
    PL_TRY(pl_json_get_text(question, "address", &address));
    PL_TRY(pl_json_get_text(question, "token", &token));
    PL_TRY(pl_json_get_int(question, "ms", 1, MEASURE_MS_MOST, &ms));
    if (strlen(token) != PL_PROBE_TOKEN)
        return PL_FAIL(PL_PEER, "a token of %zu characters", strlen(token));
    PL_TRY(pl_probe_measure(&result, address, token, ms));
    PL_TRY(pl_json_set_real(reply, "round_trip_us", result.round_trip_us));
    return pl_json_set_real(reply, "bytes_per_s", result.bytes_per_s);
}

/* --- the agent -------------------------------------------------------- */

static pl_status answer(void *context, const pl_json *question, pl_json *reply)
{
    agent *a = context;
    const char *kind = pl_agent_channel_kind(question);
    if (strcmp(kind, "try") == 0)
        return answer_try(a->app, question);
    if (strcmp(kind, "facts") == 0)
        return pl_doctor_facts(reply);
    if (strcmp(kind, "clock") == 0)
        return pl_json_set_int(reply, "wall_ns", pl_clock_wall_ns());
    if (strcmp(kind, "listen") == 0)
        return answer_listen(a, question, reply);
    if (strcmp(kind, "measure") == 0)
        return answer_measure(question, reply);
    return PL_FAIL(PL_UNSUPPORTED, "unknown message \"%.40s\"", kind);
}

/* Keep other code from reading from or writing to the launcher's connection. */
static pl_status take_standard_files(int *in, int *out)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    *in = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    *out = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    if (null < 0 || *in < 0 || *out < 0 || dup2(null, STDIN_FILENO) < 0 ||
        dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
        return PL_FAIL(PL_IO, "set up the standard files: %s", strerror(errno));
    close(null);
    return PL_OK;
}

/* ~/.cache; NULL: no home directory. */
static pl_status find_cache(char **out)
{
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    if (cache != NULL && cache[0] == '/')
        return pl_mem_copy_text(out, cache);
    return home != NULL && home[0] == '/' ? pl_file_join(out, home, ".cache")
                                          : PL_OK;
}

pl_status pl_launch_agent(const pl_app *app)
{
    agent self = { .app = app };
    char *cache = NULL;
    pl_agent_opts opts = { .answer = answer, .context = &self };
    if (isatty(STDIN_FILENO))
        return PL_FAIL(PL_USAGE, "--agent is started by launch on the hosts; "
                                 "give --hosts instead");
    PL_TRY(take_standard_files(&opts.in, &opts.out));
    signal(SIGINT, SIG_IGN); /* the end of its input ends the agent */
    signal(SIGHUP, SIG_IGN);
    PL_TRY(find_cache(&cache));
    opts.cache = cache;
    pl_status status = pl_agent_run(&opts);
    pl_mem_free(cache);
    pl_probe_free(self.probe);
    return status;
}
