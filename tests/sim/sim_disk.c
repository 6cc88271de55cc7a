/* Checkpoints of a simulated job: what the servers' disks do.
 *
 * One folder at a time is being written, by serial number; complete ones are
 * kept, the newest first.  A server that dies leaves its part out; one that
 * completes a checkpoint may die before or after it counts; a complete one may
 * turn out damaged, and the one before it is used. */
#include "sim/sim_priv.h"

#include <stdio.h>
#include <string.h>

static bool read_plan(const char *plan, size_t bytes, int32_t *serial)
{
    char text[64];
    snprintf(text, sizeof text, "%.*s", (int)bytes, plan);
    return sscanf(text, "checkpoint %d", serial) == 1;
}

const char *sim_disk_plan(char text[SIM_PLAN], int32_t serial)
{
    snprintf(text, SIM_PLAN, "checkpoint %d", serial);
    return text;
}

const sim_checkpoint *sim_disk_newest(const sim *s)
{
    for (int i = 0; i < SIM_KEPT; i++)
        if (s->disk.kept[i].serial > 0 && !s->disk.kept[i].damaged)
            return &s->disk.kept[i];
    return NULL;
}

int32_t sim_disk_begin(sim *s, int64_t step, const int64_t *counts)
{
    sim_checkpoint *made = &s->disk.making;
    *made = (sim_checkpoint) { .serial = ++s->disk.serials, .step = step };
    for (int32_t w = 0; w < s->workers; w++)
        made->counts[w] = counts[w] < 0 ? ~counts[w] : counts[w];
    sim_plan_save_fault(s);
    return made->serial;
}

/* Bit rot, or a disk that lied about a flush before its machine went down.  An
 * older one stays good: without any a job can only fail. */
void sim_disk_damage(sim *s)
{
    sim_checkpoint *newest = &s->disk.kept[0];
    bool other = false;
    for (int i = 1; i < SIM_KEPT; i++)
        other =
            other || (s->disk.kept[i].serial > 0 && !s->disk.kept[i].damaged);
    if (newest->serial == 0 || s->disk.kept[1].serial == 0 ||
        sim_draw(s, 4) != 0 || !other)
        return;
    sim_trace(s, "the checkpoint of step %lld is damaged",
              (long long)newest->step);
    newest->damaged = true;
}

/* A checkpoint that counts is of one moment: each part has what it says.  (One
 * that was given up may still be begun by a server that receives the request
 * late.) */
static void check_cut(sim *s, const sim_checkpoint *made)
{
    const sim_set *sets[SIM_SERVERS] = { NULL };
    for (int32_t j = 0; j < s->servers; j++)
        sets[j] = &made->set[j];
    if (s->mode != PL_PS_SYNC)
        sim_check_sets(s, sets, made->counts, "a checkpoint");
    for (int32_t j = 0; j < s->servers; j++)
        if (made->part_step[j] != made->step)
            sim_broken(
                s, "save K1: ps %d saves step %lld, the checkpoint is of %lld",
                j, (long long)made->part_step[j], (long long)made->step);
}

static void begin(sim_server *server, sim_task task, int32_t serial)
{
    sim *s = server->sim;
    server->task = task;
    server->cancelled = false;
    server->serial = serial;
    uint32_t slow = s->clock[sim_node(s, true, server->index)].slow;
    sim_at(s, (int64_t)(slow * (1 + sim_draw(s, s->disk.slow_ms))) * MS_NS,
           (sim_event) { .kind = SIM_STORED,
                         .node = server->index,
                         .life = server->life });
}

/* A server begins to save. */
static void note_part(sim_server *server)
{
    sim *s = server->sim;
    sim_checkpoint *made = &s->disk.making;
    sim_note(s, server);
    made->part_step[server->index] = pl_ps_core_look(server->core, 0).step;
    made->set[server->index] = server->set;
}

static int slots_of(const sim_server *server)
{
    return server->optim->ops->slot_count;
}

bool sim_disk_save(void *context, const char *plan, size_t bytes)
{
    sim_server *server = context;
    int32_t serial;
    if (server->task != SIM_TASK_NONE)
        return false;
    if (!read_plan(plan, bytes, &serial)) {
        sim_broken(server->sim, "ps %d got no plan", server->index);
        return false;
    }
    if (serial == server->sim->disk.making.serial)
        note_part(server);
    memcpy(server->image, server->params, sizeof server->image);
    for (int i = 0; i < slots_of(server); i++)
        memcpy(server->image_slots[i], pl_params_block(server->optim->slots[i]),
               (size_t)server->count * sizeof(float));
    begin(server, SIM_TASK_SAVE, serial);
    return true;
}

bool sim_disk_commit(void *context, const pl_ps_part *parts)
{
    sim_server *server = context;
    if (server->task != SIM_TASK_NONE)
        return false;
    for (int32_t j = 0; j < server->sim->servers; j++)
        if (parts[j].crc32c != (uint32_t)server->serial)
            sim_broken(server->sim,
                       "save K3: checkpoint %d is completed with a part of %u",
                       server->serial, parts[j].crc32c);
    begin(server, SIM_TASK_COMMIT, server->serial);
    return true;
}

bool sim_disk_load(void *context, const char *plan, size_t bytes)
{
    sim_server *server = context;
    int32_t serial;
    if (server->task != SIM_TASK_NONE)
        return false;
    if (!read_plan(plan, bytes, &serial)) {
        sim_broken(server->sim, "ps %d got no plan", server->index);
        return false;
    }
    begin(server, SIM_TASK_LOAD, serial);
    return true;
}

void sim_disk_cancel(void *context)
{
    ((sim_server *)context)->cancelled = true;
}

/* With a small pool nothing changes before all is written. */
bool sim_disk_touch(void *context, int64_t first, int64_t count)
{
    const sim_server *server = context;
    (void)first, (void)count;
    return server->task != SIM_TASK_SAVE || !server->sim->disk.small_pool;
}

static bool write_part(sim_server *server)
{
    sim *s = server->sim;
    sim_checkpoint *made = &s->disk.making;
    if (made->serial != server->serial)
        return false; /* its folder was replaced by another */
    if (sim_draw(s, 1000) < s->disk.failing)
        return false;
    memcpy(made->params + server->first, server->image,
           (size_t)server->count * sizeof(float));
    for (int i = 0; i < SIM_SLOTS; i++)
        memcpy(made->slots[i] + server->first, server->image_slots[i],
               (size_t)server->count * sizeof(float));
    made->parts++;
    return true;
}

/* From here on it counts. */
static bool write_manifest(sim_server *server)
{
    sim *s = server->sim;
    const sim_checkpoint *made = &s->disk.making;
    if (made->serial != server->serial)
        return false;
    if (made->parts != s->servers)
        sim_broken(s, "save K3: a checkpoint of %d parts has %d", s->servers,
                   made->parts);
    check_cut(s, made);
    memmove(&s->disk.kept[1], &s->disk.kept[0],
            (SIM_KEPT - 1) * sizeof s->disk.kept[0]);
    s->disk.kept[0] = *made;
    s->result->saves++;
    sim_trace(s, "checkpoint %d of step %lld is complete", made->serial,
              (long long)made->step);
    return true;
}

static bool read_part(sim_server *server)
{
    const sim *s = server->sim;
    size_t bytes = (size_t)server->count * sizeof(float);
    for (int i = 0; i < SIM_KEPT; i++) {
        const sim_checkpoint *kept = &s->disk.kept[i];
        if (kept->serial != server->serial)
            continue;
        memcpy(server->params, kept->params + server->first, bytes);
        for (int k = 0; k < slots_of(server); k++)
            memcpy(pl_params_block(server->optim->slots[k]),
                   kept->slots[k] + server->first, bytes);
        server->set = kept->set[server->index];
        server->loaded = true;
        server->based = false;
        return true;
    }
    return false; /* others took its place */
}

void sim_disk_done(sim *s, int32_t index, int32_t life)
{
    sim_server *server = &s->server[index];
    if (server->core == NULL || server->life != life)
        return; /* it died in between */
    if (server->frozen) {
        sim_at(s, 100 * MS_NS,
               (sim_event) { .kind = SIM_STORED, .node = index, .life = life });
        return;
    }
    sim_task task = server->task;
    bool good = task == SIM_TASK_SAVE     ? write_part(server)
                : task == SIM_TASK_COMMIT ? write_manifest(server)
                                          : read_part(server);
    server->task = SIM_TASK_NONE;
    if (server->cancelled)
        return;
    sim_trace(s, "ps %d %s checkpoint %d: %s", index,
              task == SIM_TASK_SAVE     ? "writes its part of"
              : task == SIM_TASK_COMMIT ? "completes"
                                        : "reads",
              server->serial, good ? "good" : "failed");
    pl_ps_core_stored(server->core,
                      &(pl_ps_stored) {
                          .outcome = good ? PL_SAVED_GOOD : PL_SAVED_FAILED,
                          .bytes = 1,
                          .crc32c = (uint32_t)server->serial,
                          .why = "the disk is full",
                      },
                      sim_time(s, true, index));
    pl_ps_core_retry(server->core, sim_time(s, true, index));
    sim_note(s, server);
}

/* It dies while it completes a checkpoint: before that counts, or after. */
void sim_disk_die(sim_server *server)
{
    sim *s = server->sim;
    if (server->task == SIM_TASK_COMMIT && sim_draw(s, 2) == 0)
        write_manifest(server);
    server->task = SIM_TASK_NONE;
    sim_disk_damage(s);
}
