/* tasks.c - the table of a host's tasks in a small shared file, and the lock
 * that decides which task samples for the host. */
#include "observe/resources/tasks.h"

#include "base/assert.h"
#include "base/bytes.h"
#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* A place: magic u32, process u32, time in milliseconds u64, bytes sent and
 * received by it u64 each, and by earlier owners of the place u64 each,
 * progress u64, role u32, 0 u32; little-endian.  A process of 0 has left. */
#define MAGIC       0x324b5354u /* "TSK2" */
#define PLACE_BYTES 64

typedef struct place {
    pid_t pid;
    double time; /* in seconds */
    uint64_t sent, received;
    uint64_t earlier_sent, earlier_received;
    uint64_t progress;
    pl_tasks_role role;
} place;

struct pl_tasks {
    pl_tasks_opts opts;
    char *path;
    int file;
    bool speaks;
    place own;
    uint8_t *bytes; /* of all places */
    pid_t *pids;
    pl_tasks_role *roles;
};

static void pack(const place *from, uint8_t *to)
{
    pl_put_u32(to, MAGIC);
    pl_put_u32(to + 4, (uint32_t)from->pid);
    pl_put_u64(to + 8, (uint64_t)(from->time * 1000));
    pl_put_u64(to + 16, from->sent);
    pl_put_u64(to + 24, from->received);
    pl_put_u64(to + 32, from->earlier_sent);
    pl_put_u64(to + 40, from->earlier_received);
    pl_put_u64(to + 48, from->progress);
    pl_put_u32(to + 56, (uint32_t)from->role);
    pl_put_u32(to + 60, 0);
}

/* False if no task ever used the place. */
static bool unpack(const uint8_t *from, place *to)
{
    uint32_t role = pl_get_u32(from + 56);
    if (pl_get_u32(from) != MAGIC || role >= PL_TASKS_ROLES)
        return false;
    *to = (place) {
        .pid = (pid_t)pl_get_u32(from + 4),
        .time = (double)pl_get_u64(from + 8) / 1000,
        .sent = pl_get_u64(from + 16),
        .received = pl_get_u64(from + 24),
        .earlier_sent = pl_get_u64(from + 32),
        .earlier_received = pl_get_u64(from + 40),
        .progress = pl_get_u64(from + 48),
        .role = (pl_tasks_role)role,
    };
    return true;
}

static off_t place_offset(const pl_tasks *tasks)
{
    return (off_t)tasks->opts.place * PLACE_BYTES;
}

/* Add the counts of the place's earlier owner. */
static void inherit(pl_tasks *tasks)
{
    uint8_t bytes[PLACE_BYTES];
    place before;
    if (pread(tasks->file, bytes, sizeof bytes, place_offset(tasks)) !=
            PLACE_BYTES ||
        !unpack(bytes, &before))
        return;
    tasks->own.earlier_sent = before.earlier_sent + before.sent;
    tasks->own.earlier_received = before.earlier_received + before.received;
}

pl_status pl_tasks_new(pl_tasks **out, const pl_tasks_opts *opts)
{
    PL_ASSERT(opts->place >= 0 && opts->place < PL_TASKS_MOST);
    pl_tasks *tasks;
    PL_TRY(PL_NEW(tasks, 1));
    tasks->opts = *opts;
    tasks->file = -1;
    tasks->own.pid = getpid();
    tasks->own.role = opts->role;
    pl_status status;
    PL_TRY_OUT(status, pl_mem_copy_text(&tasks->path, opts->path));
    PL_TRY_OUT(status,
               PL_NEW(tasks->bytes, (size_t)PL_TASKS_MOST * PLACE_BYTES));
    PL_TRY_OUT(status, PL_NEW(tasks->pids, PL_TASKS_MOST));
    PL_TRY_OUT(status, PL_NEW(tasks->roles, PL_TASKS_MOST));
    tasks->file = open(tasks->path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (tasks->file < 0) {
        status = PL_FAIL(PL_IO, "open %s: %s", tasks->path, strerror(errno));
        goto out;
    }
    inherit(tasks);
    *out = tasks;
    return PL_OK;
out:
    pl_tasks_free(tasks);
    return status;
}

/* Have all other tasks left? */
static bool alone(pl_tasks *tasks)
{
    pl_tasks_view view;
    return pl_tasks_look(tasks, tasks->own.time, &view) == PL_OK &&
           view.count == 0;
}

void pl_tasks_free(pl_tasks *tasks)
{
    if (tasks == NULL)
        return;
    if (tasks->file >= 0 && tasks->own.time > 0) {
        tasks->own.pid = 0;
        bool told = pl_tasks_tell(tasks, tasks->own.time, tasks->own.sent,
                                  tasks->own.received) == PL_OK;
        if (told && tasks->speaks && alone(tasks))
            unlink(tasks->path);
    }
    if (tasks->file >= 0)
        close(tasks->file);
    pl_mem_free(tasks->path);
    pl_mem_free(tasks->bytes);
    pl_mem_free(tasks->pids);
    pl_mem_free(tasks->roles);
    pl_mem_free(tasks);
}

pl_status pl_tasks_tell(pl_tasks *tasks, double time, uint64_t sent_bytes,
                        uint64_t received_bytes)
{
    uint8_t bytes[PLACE_BYTES];
    tasks->own.time = time;
    tasks->own.sent = sent_bytes;
    tasks->own.received = received_bytes;
    pack(&tasks->own, bytes);
    ssize_t wrote =
        pwrite(tasks->file, bytes, sizeof bytes, place_offset(tasks));
    if (wrote != PLACE_BYTES)
        return PL_FAIL(PL_IO, "write %s: %s", tasks->path,
                       wrote < 0 ? strerror(errno) : "cut short");
    return PL_OK;
}

void pl_tasks_progress(pl_tasks *tasks, uint64_t progress)
{
    tasks->own.progress = progress;
}

bool pl_tasks_speaks(pl_tasks *tasks)
{
    /* Some network file systems have no locks: two samplers are better than
     * none. */
    if (!tasks->speaks)
        tasks->speaks =
            flock(tasks->file, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK;
    return tasks->speaks;
}

static void add_place(pl_tasks_view *view, const place *found)
{
    uint64_t sent = found->sent + found->earlier_sent;
    uint64_t received = found->received + found->earlier_received;
    view->sent_bytes += sent;
    view->received_bytes += received;
    view->role_sent_bytes[found->role] += sent;
    view->role_received_bytes[found->role] += received;
    view->progress += found->progress;
}

pl_status pl_tasks_look(pl_tasks *tasks, double time, pl_tasks_view *out)
{
    size_t room = (size_t)PL_TASKS_MOST * PLACE_BYTES;
    ssize_t got = pread(tasks->file, tasks->bytes, room, 0);
    if (got < 0)
        return PL_FAIL(PL_IO, "read %s: %s", tasks->path, strerror(errno));
    *out = (pl_tasks_view) { .pids = tasks->pids, .roles = tasks->roles };
    for (ssize_t at = 0; at + PLACE_BYTES <= got; at += PLACE_BYTES) {
        place found;
        if (!unpack(tasks->bytes + at, &found))
            continue;
        add_place(out, &found);
        if (found.pid <= 0 || time - found.time > tasks->opts.lasts_s)
            continue;
        tasks->roles[out->count] = found.role;
        tasks->pids[out->count++] = found.pid;
    }
    return PL_OK;
}
