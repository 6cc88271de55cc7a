/* A cluster as JSON: the file of --cluster, TF_CONFIG, and the cluster that a
 * supervisor sends. */
#include "job/cluster/cluster_priv.h"

#include "base/file/file.h"

#include <stdio.h>
#include <string.h>

#define FILE_MOST ((size_t)1 << 20)

/* Errors in a cluster are usage errors. */
static pl_status as_usage(pl_status status)
{
    return status == PL_FORMAT ? PL_USAGE : status;
}

/* Keys of TF_CONFIG that do not belong to the cluster. */
static bool is_entry(const char *key, const pl_json *value)
{
    return strcmp(pl_json_kind(value), "an object") == 0 &&
           strcmp(key, "task") != 0 && strcmp(key, "job") != 0;
}

/* "single, cluster, cluster2" */
static void list_entries(const pl_json *json, char *text, size_t room)
{
    void *walk = NULL;
    const char *key;
    const pl_json *value;
    size_t used = 0;
    snprintf(text, room, "none");
    while (pl_json_next(json, &walk, &key, &value) && used < room)
        if (is_entry(key, value)) {
            int wrote = snprintf(text + used, room - used, "%s%.40s",
                                 used == 0 ? "" : ", ", key);
            used += wrote > 0 ? (size_t)wrote : room;
        }
}

/* The entry named `deploy`, or the only one. */
static pl_status pick_entry(const pl_json *json, const char *deploy,
                            const char **name, const pl_json **out)
{
    void *walk = NULL;
    const char *key;
    const pl_json *value, *found = NULL;
    int matches = 0;
    while (pl_json_next(json, &walk, &key, &value))
        if (is_entry(key, value) &&
            (deploy == NULL || strcmp(key, deploy) == 0)) {
            found = value;
            *name = key;
            matches++;
        }
    *out = found;
    if (matches == 1)
        return PL_OK;
    char all[512];
    list_entries(json, all, sizeof all);
    if (deploy != NULL)
        return PL_FAIL(PL_USAGE,
                       "--deploy %s: no such entry; the entries "
                       "are: %s",
                       deploy, all);
    if (matches == 0)
        return PL_FAIL(PL_FORMAT, "expected {\"cluster\": {role: addresses}}, "
                                  "found no object in it");
    return PL_FAIL(PL_USAGE, "found %d clusters; choose one with --deploy: %s",
                   matches, all);
}

/* True when the object itself maps roles to addresses. */
static bool is_bare(const pl_json *json)
{
    void *walk = NULL;
    const char *key;
    const pl_json *value;
    pl_role role;
    while (pl_json_next(json, &walk, &key, &value))
        if (pl_cluster_role(key, &role))
            return true;
    return false;
}

static pl_status read_entries(pl_cluster *out, const pl_json *json,
                              const char *deploy)
{
    const char *name = "";
    const pl_json *entry;
    if (strcmp(pl_json_kind(json), "an object") != 0)
        return PL_FAIL(PL_FORMAT, "expected an object, found %s",
                       pl_json_kind(json));
    if (deploy == NULL && is_bare(json))
        return pl_cluster_roles(out, json, false);
    PL_TRY(pick_entry(json, deploy, &name, &entry));
    pl_status status;
    if (pl_json_has(entry, "cluster")) { /* a complete entry */
        status = pl_json_get_object(entry, "cluster", &entry);
        if (status != PL_OK)
            return pl_context(status, "%s", name);
    }
    status = pl_cluster_roles(out, entry, false);
    return status == PL_OK ? PL_OK : pl_context(status, "%s", name);
}

pl_status pl_cluster_read(pl_cluster *out, const char *path, const char *deploy)
{
    pl_json *json;
    PL_TRY(as_usage(pl_json_read_file(&json, path, FILE_MOST)));
    pl_status status = read_entries(out, json, deploy);
    pl_json_free(json);
    if (status != PL_OK)
        return pl_context(as_usage(status), "cluster file %s", path);
    out->evaluator = true; /* may join, as it needs no address */
    return PL_OK;
}

/* TensorFlow accepts a number, or its digits as text. */
static pl_status read_index(const pl_json *task, int32_t *out)
{
    const char *digits;
    int64_t index;
    pl_status status = pl_json_get_int(task, "index", 0, INT32_MAX, &index);
    if (status != PL_OK && pl_json_has(task, "index") &&
        pl_json_get_text(task, "index", &digits) == PL_OK) {
        index = pl_cluster_number(digits);
        status = index >= 0 ? PL_OK
                            : PL_FAIL(PL_FORMAT,
                                      "index: expected a whole number from 0 "
                                      "on, found \"%.20s\"",
                                      digits);
    }
    PL_TRY(status);
    *out = (int32_t)index;
    return PL_OK;
}

static pl_status read_task(pl_task *out, const pl_json *task)
{
    const char *type;
    PL_TRY(pl_json_get_text(task, "type", &type));
    if (!pl_cluster_role(type, &out->role))
        return PL_FAIL(PL_FORMAT,
                       "type: expected chief, worker, ps or evaluator, found "
                       "\"%.80s\"",
                       type);
    out->index = 0;
    bool alone = out->role == PL_ROLE_CHIEF || out->role == PL_ROLE_EVALUATOR;
    return alone && !pl_json_has(task, "index") ? PL_OK
                                                : read_index(task, &out->index);
}

static pl_status read_tf_config(pl_cluster *cluster, pl_task *task,
                                const pl_json *json)
{
    const pl_json *roles, *own;
    pl_status status;
    PL_TRY(pl_json_get_object(json, "cluster", &roles));
    if (task != NULL) {
        PL_TRY(pl_json_get_object(json, "task", &own));
        status = read_task(task, own);
        if (status != PL_OK)
            return pl_context(status, "task");
    }
    status = pl_cluster_roles(cluster, roles, false);
    if (status != PL_OK)
        return pl_context(status, "cluster");
    cluster->evaluator = true; /* TensorFlow leaves it out of the cluster */
    status = task != NULL ? pl_cluster_check(cluster, *task) : PL_OK;
    if (status != PL_OK)
        pl_cluster_close(cluster);
    return status == PL_OK ? PL_OK : pl_context(status, "task");
}

/* Parse TF_CONFIG, which must be an object. */
static pl_status parse_tf_config(pl_json **out, const char *text)
{
    pl_json *json;
    PL_TRY(as_usage(pl_json_parse(&json, text, strlen(text), "TF_CONFIG")));
    const char *kind = pl_json_kind(json);
    if (strcmp(kind, "an object") == 0) {
        *out = json;
        return PL_OK;
    }
    pl_json_free(json);
    return PL_FAIL(PL_USAGE, "TF_CONFIG: expected an object, found %s", kind);
}

/* Whether `key` has a non-empty value. */
static bool has_something(const pl_json *json, const char *key)
{
    void *walk = NULL;
    const char *name;
    const pl_json *value;
    while (pl_json_next(json, &walk, &name, &value))
        if (strcmp(name, key) == 0) {
            const char *kind = pl_json_kind(value);
            return strcmp(kind, "an object") == 0 ? pl_json_length(value) > 0
                                                  : strcmp(kind, "null") != 0;
        }
    return false;
}

pl_status pl_cluster_tf_config_has(const char *text, bool *cluster, bool *task)
{
    pl_json *json;
    PL_TRY(parse_tf_config(&json, text));
    *cluster = has_something(json, "cluster");
    *task = has_something(json, "task");
    pl_json_free(json);
    return PL_OK;
}

pl_status pl_cluster_tf_config(pl_cluster *out, pl_task *task, const char *text)
{
    pl_json *json;
    pl_cluster cluster;
    pl_task own;
    PL_TRY(parse_tf_config(&json, text));
    pl_status status =
        read_tf_config(&cluster, task != NULL ? &own : NULL, json);
    pl_json_free(json);
    if (status != PL_OK)
        return pl_context(as_usage(status), "TF_CONFIG");
    *out = cluster;
    if (task != NULL)
        *task = own;
    return PL_OK;
}

/* Add `count` addresses under `role`, if there are any. */
static pl_status put_role(pl_json *roles, pl_role role, char *const *address,
                          int32_t count)
{
    if (count == 0)
        return PL_OK;
    pl_json *list;
    PL_TRY(pl_json_new_array(&list));
    for (int32_t i = 0; i < count; i++) {
        bool known = address != NULL && address[i] != NULL;
        pl_status status = pl_json_append_text(list, known ? address[i] : "");
        if (status != PL_OK) {
            pl_json_free(list);
            return status;
        }
    }
    return pl_json_set_take(roles, pl_role_text(role), list);
}

pl_status pl_cluster_json(const pl_cluster *cluster, pl_json **out)
{
    pl_json *json, *roles = NULL;
    int32_t chief = cluster->named_chief;
    char *const *workers = cluster->worker_address;
    pl_status status;
    PL_TRY(pl_json_new_object(&json));
    PL_TRY_OUT(status, pl_json_new_object(&roles));
    PL_TRY_OUT(status, put_role(roles, PL_ROLE_CHIEF, workers, chief));
    PL_TRY_OUT(status, put_role(roles, PL_ROLE_WORKER,
                                workers == NULL ? NULL : workers + chief,
                                cluster->workers - chief));
    PL_TRY_OUT(status,
               put_role(roles, PL_ROLE_PS, cluster->ps_address, cluster->ps));
    PL_TRY_OUT(status,
               put_role(roles, PL_ROLE_EVALUATOR, NULL, cluster->evaluator));
    pl_json *taken = roles;
    roles = NULL;
    PL_TRY_OUT(status, pl_json_set_take(json, "cluster", taken));
    *out = json;
    return PL_OK;
out:
    pl_json_free(roles);
    pl_json_free(json);
    return status;
}

pl_status pl_cluster_from_json(pl_cluster *out, const pl_json *json)
{
    const pl_json *roles;
    PL_TRY(pl_json_get_object(json, "cluster", &roles));
    pl_status status = pl_cluster_roles(out, roles, true);
    return status == PL_OK ? PL_OK : pl_context(status, "cluster");
}
