/* record.c - finds the runs below some folders and reads their run.json and
 * summary.json. A run that cannot be read is left out with a reason. */
#include "observe/runs/record.h"

#include "base/error.h"
#include "base/file/file.h"
#include "base/mem.h"
#include "observe/runs/experiment.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define FACTS_MOST 64

const char *pl_record_arg(const pl_record *record, const char *name)
{
    const pl_json *args = record->run.args;
    const char *text;
    if (!pl_json_has(args, name) ||
        pl_json_get_text(args, name, &text) != PL_OK)
        return "";
    return text;
}

double pl_record_number(const pl_record *record, const char *key)
{
    const pl_summary *s = &record->summary;
    if (!record->ended)
        return NAN;
    if (strcmp(key, "seconds_per_step") == 0)
        return s->steps > 0 ? s->seconds / (double)s->steps : (double)NAN;
    return pl_fields_number(&pl_summary_fields, s, key);
}

const char *pl_record_stopped_by(const pl_record *record)
{
    return record->ended ? record->summary.stopped_by : "";
}

pl_status pl_record_leave_out(pl_json *list, const char *path, pl_status status)
{
    pl_json *entry;
    pl_error why;
    if (status == PL_NOMEM)
        return status;
    pl_error_save(&why, status);
    why.message[pl_error_words(why.message)] = '\0';
    PL_TRY(pl_json_new_object(&entry));
    status = pl_json_set_text(entry, "path", path);
    if (status == PL_OK)
        status = pl_json_set_text(entry, "why", why.message);
    if (status != PL_OK) { /* a path that is not UTF-8 */
        pl_json_free(entry);
        return status == PL_NOMEM ? status : PL_OK;
    }
    return pl_json_append_take(list, entry);
}

static void close_record(pl_record *record)
{
    pl_mem_free(record->path);
    pl_run_record_close(&record->run);
    pl_summary_close(&record->summary);
}

static pl_status read_summary(pl_record *record)
{
    char *file;
    PL_TRY(pl_file_join(&file, record->path, "summary.json"));
    pl_status status = pl_summary_read(&record->summary, file);
    pl_mem_free(file);
    record->ended = status == PL_OK;
    return status == PL_NOTFOUND ? PL_OK : status;
}

static pl_status read_record(pl_record *record, const char *path)
{
    *record = (pl_record) { 0 };
    pl_status status = pl_mem_copy_text(&record->path, path);
    if (status == PL_OK)
        status = pl_run_record_read(&record->run, path);
    if (status == PL_OK)
        status = read_summary(record);
    if (status != PL_OK)
        close_record(record);
    return status;
}

/* Add the run in a folder, or list why not. */
static pl_status add_record(pl_records *records, const char *path)
{
    PL_TRY(PL_GROW(records->list, records->count, records->room));
    pl_status status = read_record(&records->list[records->count], path);
    if (status != PL_OK)
        return pl_record_leave_out(records->left_out, path, status);
    records->count++;
    return PL_OK;
}

static pl_status holds(const char *path, const char *name, bool *out)
{
    char *file;
    PL_TRY(pl_file_join(&file, path, name));
    *out = pl_file_exists(file);
    pl_mem_free(file);
    return PL_OK;
}

/* Numbers by value: batch-50 before batch-100. */
static int by_version(const void *a, const void *b)
{
    return strverscmp(*(char *const *)a, *(char *const *)b);
}

/* Levels of folders above the runs: a sweep's, and that of several sweeps. */
#define LEVELS 2

static pl_status add_runs(pl_records *records, const char *folder, int levels);

/* Add a run, or the runs of a sweep if another level is allowed. */
static pl_status add_entry(pl_records *records, const char *path, int levels)
{
    bool run = false, sweep = false;
    PL_TRY(holds(path, "run.json", &run));
    if (run)
        return add_record(records, path);
    PL_TRY(holds(path, "sweep.json", &sweep));
    return sweep && levels > 1 ? add_runs(records, path, levels - 1) : PL_OK;
}

static pl_status add_runs(pl_records *records, const char *folder, int levels)
{
    char **names, *path = NULL;
    size_t count;
    PL_TRY(pl_file_list(&names, &count, folder));
    qsort(names, count, sizeof *names, by_version);
    pl_status status = PL_OK;
    for (size_t i = 0; i < count && status == PL_OK; i++) {
        if (names[i][0] == '.')
            continue;
        status = pl_file_join(&path, folder, names[i]);
        if (status == PL_OK)
            status = add_entry(records, path, levels);
        pl_mem_free(path);
        path = NULL;
    }
    pl_mem_free(names);
    return status;
}

static pl_status add_folder(pl_records *records, const char *folder)
{
    size_t before = records->count + pl_json_length(records->left_out);
    if (!pl_file_exists(folder))
        return PL_FAIL(PL_NOTFOUND,
                       "%s: there is no such folder; expected a run folder, "
                       "or a folder of run folders",
                       folder);
    PL_TRY(add_runs(records, folder, LEVELS));
    if (records->count + pl_json_length(records->left_out) == before)
        return PL_FAIL(PL_NOTFOUND,
                       "%s: neither a run folder (no run.json) nor a folder "
                       "of run folders",
                       folder);
    return PL_OK;
}

static const char *last_parts(const char *path, int parts)
{
    const char *at = path + strlen(path);
    while (at > path && (at[-1] != '/' || at[0] == '\0' || --parts > 0))
        at--;
    return at;
}

static int count_parts(const char *name)
{
    int parts = 1;
    for (; *name != '\0'; name++)
        parts += *name == '/';
    return parts;
}

static bool same_folder(const pl_record *a, const pl_record *b)
{
    size_t bytes = (size_t)(last_parts(a->path, 1) - a->path);
    return bytes == (size_t)(last_parts(b->path, 1) - b->path) &&
           memcmp(a->path, b->path, bytes) == 0;
}

/* Runs of one folder have names with the same number of path parts. */
static void name_alike(pl_records *records, size_t index)
{
    pl_record *own = &records->list[index];
    int parts = count_parts(own->name);
    for (size_t i = 0; i < records->count; i++) {
        pl_record *other = &records->list[i];
        if (i != index && count_parts(other->name) < parts &&
            same_folder(own, other))
            other->name = last_parts(other->path, parts);
    }
}

/* Use the fewest path parts that distinguish the runs. */
static void name_records(pl_records *records)
{
    for (size_t i = 0; i < records->count; i++) {
        pl_record *own = &records->list[i];
        int parts = 1;
        bool unique = false;
        for (; !unique && parts < 8; parts++) {
            own->name = last_parts(own->path, parts);
            unique = true;
            for (size_t j = 0; j < records->count && unique; j++)
                unique = j == i ||
                         strcmp(own->name,
                                last_parts(records->list[j].path, parts)) != 0;
        }
    }
    for (size_t i = 0; i < records->count; i++)
        name_alike(records, i);
}

/* Runs of sweeps come before those without, otherwise in their order, so that
 * the latter are one part of a report. */
static pl_status put_loose_last(pl_records *records)
{
    pl_record *ordered;
    size_t count = 0;
    PL_TRY(PL_NEW(ordered, records->count + 1));
    for (int loose = 0; loose < 2; loose++)
        for (size_t i = 0; i < records->count; i++)
            if ((records->list[i].experiment == NULL) == (loose == 1))
                ordered[count++] = records->list[i];
    pl_mem_free(records->list);
    records->list = ordered;
    records->room = count + 1;
    return PL_OK;
}

pl_status pl_records_init(pl_records *records, char *const *paths, size_t count)
{
    *records = (pl_records) { 0 };
    pl_status status = pl_json_new_array(&records->left_out);
    for (size_t i = 0; i < count && status == PL_OK; i++) {
        char *path;
        bool run = false;
        PL_TRY_OUT(status, pl_mem_copy_text(&path, paths[i]));
        for (size_t n = strlen(path); n > 1 && path[n - 1] == '/'; n--)
            path[n - 1] = '\0';
        status = holds(path, "run.json", &run);
        if (status == PL_OK)
            status =
                run ? add_record(records, path) : add_folder(records, path);
        pl_mem_free(path);
    }
    name_records(records);
    if (status == PL_OK)
        status = pl_experiments_read(records);
    if (status == PL_OK)
        status = put_loose_last(records);
out:
    if (status != PL_OK)
        pl_records_close(records);
    return status;
}

void pl_records_close(pl_records *records)
{
    for (size_t i = 0; i < records->count; i++)
        close_record(&records->list[i]);
    pl_mem_free(records->list);
    pl_json_free(records->left_out);
    pl_experiments_close(records);
    *records = (pl_records) { 0 };
}

bool pl_records_differ(const pl_records *records, const char *arg)
{
    for (size_t i = 1; i < records->count; i++)
        if (strcmp(pl_record_arg(&records->list[0], arg),
                   pl_record_arg(&records->list[i], arg)) != 0)
            return true;
    return false;
}

const pl_param *pl_records_flag(const pl_records *records, const char *arg)
{
    const pl_param *found =
        pl_param_find(records->flags, records->flag_groups, arg);
    if (found != NULL || records->count == 0)
        return found;
    const pl_record *first = &records->list[0];
    pl_param_group own = { .params = first->own_flags,
                           .count = first->own_flag_count };
    return pl_param_find(&own, 1, arg);
}

bool pl_records_flag_is(const pl_records *records, const char *arg,
                        unsigned traits)
{
    const pl_param *param = pl_records_flag(records, arg);
    return param != NULL && (param->traits & traits) != 0;
}

bool pl_records_flag_applies(const pl_records *records, size_t index,
                             const char *arg)
{
    pl_param_fact list[FACTS_MOST];
    size_t count = 0;
    const pl_param *param = pl_records_flag(records, arg);
    if (param == NULL)
        return true;
    for (size_t g = 0; g < records->flag_groups; g++)
        for (size_t i = 0; i < records->flags[g].count; i++) {
            const pl_param *other = &records->flags[g].params[i];
            const char *value =
                pl_record_arg(&records->list[index], other->name);
            if (other->kind == PL_PARAM_CHOICE && value[0] != '\0' &&
                count < FACTS_MOST)
                list[count++] = (pl_param_fact) { other->name, value };
        }
    return pl_param_applies(param,
                            &(pl_param_facts) { .list = list, .count = count });
}

bool pl_records_flag_follows(const pl_records *records, const char *arg)
{
    const pl_param *param = pl_records_flag(records, arg);
    if (param == NULL || param->follows == NULL)
        return false;
    for (size_t i = 1; i < records->count; i++)
        for (size_t j = 0; j < i; j++) {
            const pl_record *a = &records->list[i], *b = &records->list[j];
            if (strcmp(pl_record_arg(a, param->follows),
                       pl_record_arg(b, param->follows)) == 0 &&
                strcmp(pl_record_arg(a, arg), pl_record_arg(b, arg)) != 0)
                return false;
        }
    return true;
}

/* Does every flag of `a`, except those of a repetition, have the same value in
 * `b`? */
static bool covers(const pl_records *records, const pl_record *a,
                   const pl_record *b)
{
    const pl_json *value;
    const char *name;
    void *walk = NULL;
    while (pl_json_next(a->run.args, &walk, &name, &value))
        if (!pl_records_flag_is(records, name, PL_PARAM_REPEATS) &&
            strcmp(pl_record_arg(a, name), pl_record_arg(b, name)) != 0)
            return false;
    return strcmp(a->run.model, b->run.model) == 0;
}

size_t pl_records_first_like(const pl_records *records, size_t index)
{
    const pl_record *own = &records->list[index];
    for (size_t i = 0; i < index; i++)
        if (covers(records, own, &records->list[i]) &&
            covers(records, &records->list[i], own))
            return i;
    return index;
}
