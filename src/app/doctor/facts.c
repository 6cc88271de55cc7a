/* facts.c - collects the facts of this host: version, cores, memory, free
 * space, limits, keys, and running tasks. */
#include "app/doctor/doctor.h"
#include "base/clock.h"
#include "base/file/file.h"
#include "base/host/ram.h"
#include "base/mem.h"
#include "base/thread.h"
#include "kernels/backend.h"
#include "net/keys.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define HOST_BYTES 256
#define TEXT_BYTES 512
#define LEFT_MOST  16 /* processes that are listed */

/* The beginning of a small file; "" when it cannot be read.  The NULs of a
 * command line become spaces. */
static void read_some(const char *path, char *text, size_t room)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd >= 0 ? read(fd, text, room - 1) : 0;
    if (fd >= 0)
        close(fd);
    text[got > 0 ? got : 0] = '\0';
    for (ssize_t i = 0; i + 1 < got; i++)
        if (text[i] == '\0')
            text[i] = ' ';
}

static int64_t free_bytes(const char *folder)
{
    struct statvfs fs;
    return statvfs(folder, &fs) == 0
               ? (int64_t)fs.f_bavail * (int64_t)fs.f_frsize
               : -1;
}

/* The "madvise" of "always [madvise] never". */
static void chosen(const char *text, char *out, size_t room)
{
    const char *open = strchr(text, '[');
    const char *close = open != NULL ? strchr(open, ']') : NULL;
    if (close == NULL)
        snprintf(out, room, "unknown");
    else
        snprintf(out, room, "%.*s", (int)(close - open - 1), open + 1);
}

static const pl_field task_rows[] = {
    { NULL, PL_FIELD_OWN_TEXT(pl_doctor_task, line) },
};
static const pl_fields task_fields = PL_FIELDS(pl_doctor_task, task_rows);

/* A host with another version may lack some of these. */
#define MAYBE .when = PL_WHEN_KNOWN, .or_null = true
#define BYTES MAYBE, .least = -1, .most = INT64_MAX

static const pl_field facts_rows[] = {
    { "host", PL_FIELD_TEXT(pl_facts, host), MAYBE },
    { "version", PL_FIELD_TEXT(pl_facts, version), MAYBE },
    { "kernels", PL_FIELD_TEXT(pl_facts, kernels), MAYBE },
    { "cores", PL_FIELD_INT(pl_facts, cores), MAYBE },
    { "load", PL_FIELD_REAL(pl_facts, load), .when = PL_WHEN_KNOWN },
    { "memory_free", PL_FIELD_INT(pl_facts, memory_free), BYTES },
    { "memory_limit", PL_FIELD_TEXT(pl_facts, memory_limit), MAYBE },
    { "disk_free", PL_FIELD_INT(pl_facts, disk_free), BYTES },
    { "shm_free", PL_FIELD_INT(pl_facts, shm_free), BYTES },
    { "huge_pages", PL_FIELD_TEXT(pl_facts, huge_pages), MAYBE },
    { "files_most", PL_FIELD_INT(pl_facts, files_most), MAYBE },
    { "keys", PL_FIELD_TEXT(pl_facts, keys), .when = PL_WHEN_SET },
    { "keys_problem", PL_FIELD_TEXT(pl_facts, keys_problem),
      .when = PL_WHEN_SET },
    { "tasks", PL_FIELD_LIST(pl_facts, tasks, task_count, &task_fields),
      .most = 4096 },
};
const pl_fields pl_facts_fields = PL_FIELDS(pl_facts, facts_rows);

/* Is this the command line of a task? */
static bool is_task(const char *command)
{
    const char *end = strchr(command, ' ');
    size_t length = end != NULL ? (size_t)(end - command) : strlen(command);
    return length >= 8 && strncmp(command + length - 8, "paceline", 8) == 0 &&
           (strstr(command, " --role ") != NULL ||
            strstr(command, " train ") != NULL);
}

/* The processes of jobs that run on this host. */
static pl_status add_task(pl_facts *facts, const char *pid)
{
    char path[64], command[TEXT_BYTES];
    snprintf(path, sizeof path, "/proc/%.20s/cmdline", pid);
    read_some(path, command, sizeof command);
    if (!is_task(command) || atoi(pid) == (int)getpid())
        return PL_OK;
    pl_agent_channel_clean(command);
    PL_TRY(pl_mem_format(&facts->tasks[facts->task_count].line, "%s %.80s", pid,
                         command));
    facts->task_count++;
    return PL_OK;
}

static pl_status add_tasks(pl_facts *facts)
{
    char **names;
    size_t count;
    PL_TRY(PL_NEW(facts->tasks, LEFT_MOST));
    PL_TRY(pl_file_list(&names, &count, "/proc"));
    pl_status status = PL_OK;
    for (size_t i = 0; status == PL_OK && i < count; i++)
        if (names[i][0] >= '1' && names[i][0] <= '9' &&
            facts->task_count < LEFT_MOST)
            status = add_task(facts, names[i]);
    pl_mem_free(names);
    return status;
}

/* The problem with the key file that tasks here would use; NULL: none. */
static const char *find_problem(const char *file)
{
    pl_secret secret;
    if (file == NULL)
        return NULL;
    pl_status status = pl_secret_read(&secret, file);
    pl_keys_wipe(&secret, sizeof secret);
    return status == PL_OK ? NULL : pl_error_message();
}

static const char *find_keys(void)
{
    const char *file = getenv("PACELINE_KEYS");
    return file != NULL && file[0] != '\0' ? file : NULL;
}

pl_status pl_doctor_facts(pl_json *out)
{
    char host[HOST_BYTES] = "", huge[TEXT_BYTES], mode[32], load[TEXT_BYTES];
    char problem[TEXT_BYTES];
    struct rlimit files = { 0 };
    pl_ram ram = pl_ram_available();
    if (gethostname(host, sizeof host - 1) != 0)
        host[0] = '\0';
    if (getrlimit(RLIMIT_NOFILE, &files) != 0)
        files.rlim_cur = 0;
    read_some("/sys/kernel/mm/transparent_hugepage/enabled", huge, sizeof huge);
    chosen(huge, mode, sizeof mode);
    read_some("/proc/loadavg", load, sizeof load);
    const char *wrong = find_problem(find_keys());
    snprintf(problem, sizeof problem, "%s", wrong != NULL ? wrong : "");
    pl_facts facts = {
        .host = host,
        .version = pl_version(),
        .kernels = pl_kernels_best()->name,
        .cores = pl_thread_cores(),
        .load = strtod(load, NULL),
        .memory_free = ram.bytes,
        .memory_limit = ram.limit,
        .disk_free = free_bytes("."),
        .shm_free = free_bytes("/dev/shm"),
        .huge_pages = mode,
        .files_most =
            files.rlim_cur > INT32_MAX ? INT32_MAX : (int32_t)files.rlim_cur,
        .keys = find_keys(),
        .keys_problem = wrong != NULL ? problem : NULL,
    };
    pl_status status = add_tasks(&facts);
    if (status == PL_OK)
        status = pl_fields_add(&pl_facts_fields, &facts, out);
    pl_fields_close(&pl_facts_fields, &facts);
    return status;
}
