/* checkpoint_list.c - the part of checkpoint.h about a folder of
 * checkpoints. */
#include "state/checkpoint/checkpoint.h"

#include "base/assert.h"
#include "base/file/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "state/checkpoint/checkpoint_priv.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A name in the folder that a checkpoint may have. */
struct candidate {
    int64_t step;
    bool old; /* the complete one that a rewrite moved away */
    const char *name;
};

struct candidates {
    char **names; /* all names in the folder, sorted */
    size_t name_count;
    struct candidate *list; /* newest first */
    size_t count;
};

static bool parse_name(const char *name, struct candidate *out)
{
    char again[32];
    long long step = -1;
    if (sscanf(name, "step-%10lld", &step) != 1 || step < 0)
        return false;
    snprintf(again, sizeof again, STEP_FORMAT, step);
    size_t length = strlen(again);
    if (strncmp(name, again, length) != 0)
        return false;
    bool old = strcmp(name + length, OLD_SUFFIX) == 0;
    *out = (struct candidate) { step, old, name };
    return old || name[length] == '\0';
}

/* Newest first; of the same step, the .old one last. */
static int compare(const void *a, const void *b)
{
    const struct candidate *x = a;
    const struct candidate *y = b;
    if (x->step != y->step)
        return x->step > y->step ? -1 : 1;
    return (int)x->old - (int)y->old;
}

static void close_candidates(struct candidates *all)
{
    pl_mem_free(all->list);
    pl_mem_free(all->names);
}

static pl_status list_candidates(struct candidates *out, const char *folder)
{
    struct candidates all = { 0 };
    PL_TRY(pl_file_list(&all.names, &all.name_count, folder));
    pl_status status = PL_NEW(all.list, all.name_count);
    if (status != PL_OK) {
        close_candidates(&all);
        return status;
    }
    for (size_t i = 0; i < all.name_count; i++)
        if (parse_name(all.names[i], &all.list[all.count]))
            all.count++;
    qsort(all.list, all.count, sizeof *all.list, compare);
    *out = all;
    return PL_OK;
}

/* Open a candidate; the step in its manifest must be the name's. */
static pl_status open_candidate(pl_checkpoint **out, const char *checkpoints,
                                const struct candidate *candidate,
                                pl_checkpoint_look look)
{
    char *folder;
    pl_checkpoint *checkpoint = NULL;
    PL_TRY(pl_file_join(&folder, checkpoints, candidate->name));
    pl_status status = pl_checkpoint_open_folder(&checkpoint, folder, look);
    if (status == PL_OK &&
        pl_checkpoint_manifest(checkpoint)->step != candidate->step) {
        status = PL_FAIL(PL_FORMAT,
                         "checkpoint %s: its manifest is of step %lld", folder,
                         (long long)pl_checkpoint_manifest(checkpoint)->step);
        pl_checkpoint_free(checkpoint);
    }
    pl_mem_free(folder);
    if (status == PL_OK)
        *out = checkpoint;
    return status;
}

/* PL_NOTFOUND when there is none.  A torn or damaged one is skipped.  One that
 * cannot be read at the moment, or was written by a newer program, is a
 * failure: resuming without it would lose its progress. */
static pl_status open_newest(pl_checkpoint **out, const char *checkpoints,
                             const struct candidates *all)
{
    for (size_t i = 0; i < all->count; i++) {
        pl_status status =
            open_candidate(out, checkpoints, &all->list[i], PL_LOOK_ALL);
        if (!pl_checkpoint_is_rubbish(status))
            return status;
        pl_log(PL_LOG_WARN, "skipped: %s", pl_error_message());
    }
    return PL_FAIL(PL_NOTFOUND, "no complete checkpoint in %s", checkpoints);
}

pl_status pl_checkpoint_find(pl_checkpoint **out, const char *checkpoints)
{
    struct candidates all;
    PL_TRY(list_candidates(&all, checkpoints));
    pl_status status = open_newest(out, checkpoints, &all);
    close_candidates(&all);
    return status;
}

pl_status pl_checkpoint_open_step(pl_checkpoint **out, const char *checkpoints,
                                  int64_t step)
{
    char name[32];
    snprintf(name, sizeof name, STEP_FORMAT, (long long)step);
    return open_candidate(out, checkpoints,
                          &(struct candidate) { .step = step, .name = name },
                          PL_LOOK_ALL);
}

static pl_status remove_name(const char *checkpoints, const char *name)
{
    char *path;
    PL_TRY(pl_file_join(&path, checkpoints, name));
    pl_status status = pl_file_remove_all(path);
    pl_mem_free(path);
    return status;
}

/* Remove a complete checkpoint: rename it first, which is atomic, then remove
 * its files. */
static pl_status remove_complete(const char *checkpoints, const char *name)
{
    pl_status status;
    char *path = NULL;
    char *gone = NULL;
    PL_TRY_OUT(status, pl_file_join(&path, checkpoints, name));
    PL_TRY_OUT(status, pl_mem_format(&gone, "%s/.%s.gone", checkpoints, name));
    PL_TRY_OUT(status, pl_file_remove_all(gone));
    PL_TRY_OUT(status, pl_file_rename(path, gone));
    PL_TRY_OUT(status, pl_file_remove_all(gone));
out:
    pl_mem_free(gone);
    pl_mem_free(path);
    return status;
}

/* Decide about one candidate; *kept counts the complete ones that are kept,
 * *last_step is the step of the last of these. */
static pl_status prune_one(const char *checkpoints,
                           const struct candidate *candidate, int32_t keep,
                           int32_t *kept, int64_t *last_step)
{
    pl_checkpoint *checkpoint = NULL;
    pl_status status =
        open_candidate(&checkpoint, checkpoints, candidate, PL_LOOK_SIZES);
    pl_checkpoint_free(checkpoint);
    if (pl_checkpoint_is_rubbish(status))
        return remove_name(checkpoints, candidate->name);
    if (status == PL_NOMEM)
        return status;
    if (status != PL_OK) /* of a newer program, or not readable at the moment */
        return PL_OK;
    if (*kept == keep || candidate->step == *last_step)
        return remove_complete(checkpoints, candidate->name);
    (*kept)++;
    *last_step = candidate->step;
    return PL_OK;
}

static bool is_temporary(const char *name)
{
    return strncmp(name, ".step-", strlen(".step-")) == 0;
}

static bool is_spared(const struct candidate *candidate, int64_t spare)
{
    return candidate->step == spare && !candidate->old;
}

pl_status pl_checkpoint_prune(const char *checkpoints, int64_t step,
                              int32_t keep, int64_t spare)
{
    PL_ASSERT(keep >= 1);
    struct candidates all;
    PL_TRY(list_candidates(&all, checkpoints));
    pl_status status = PL_OK;
    int32_t kept = 0;
    int64_t last_step = -1;
    for (size_t i = 0; status == PL_OK && i < all.count; i++)
        if (all.list[i].step <= step && !is_spared(&all.list[i], spare))
            status =
                prune_one(checkpoints, &all.list[i], keep, &kept, &last_step);
    for (size_t i = 0; status == PL_OK && i < all.name_count; i++)
        if (is_temporary(all.names[i]))
            status = remove_name(checkpoints, all.names[i]);
    close_candidates(&all);
    return status == PL_OK ? PL_OK
                           : pl_context(status, "removing old checkpoints");
}

static pl_status remove_step(const char *checkpoints, int64_t step,
                             const char *suffix)
{
    char *name, *path;
    PL_TRY(pl_mem_format(&name, STEP_FORMAT "%s", (long long)step, suffix));
    pl_status status = pl_file_join(&path, checkpoints, name);
    if (status == PL_OK) {
        if (pl_file_exists(path))
            status = remove_complete(checkpoints, name);
        pl_mem_free(path);
    }
    pl_mem_free(name);
    return status;
}

pl_status pl_checkpoint_remove(const char *checkpoints, int64_t step)
{
    return remove_step(checkpoints, step, "");
}

pl_status pl_checkpoint_remove_old(const char *checkpoints, int64_t step)
{
    return remove_step(checkpoints, step, OLD_SUFFIX);
}
