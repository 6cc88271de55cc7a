/* A cluster as JSON: the file of --cluster, TF_CONFIG, and what a supervisor
 * sends.
 *
 * The formats are TensorFlow's: a role has a list of addresses, or an object
 * from index to address, which there may leave tasks out; here all must be
 * named, as their number decides who computes what.  Between our own
 * processes an address may be "": not known, or of a task that does not
 * listen. */
#include "dist/cluster.h"

#include "base/file.h"
#include "base/mem.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#define FILE_MOST ((size_t)1 << 20)
#define HOST_MOST 255
#define ROLES     4

/* The addresses of one role. */
typedef struct role_list {
    char **address; /* NULL: the role was not named */
    int32_t count;
} role_list;

typedef struct parsed {
    role_list role[ROLES]; /* by pl_role */
    bool old_name;         /* the chief was called master */
    bool open;             /* "" is an address, too */
} parsed;

static void drop(parsed *p)
{
    for (int r = 0; r < ROLES; r++) {
        for (int32_t i = 0; i < p->role[r].count; i++)
            pl_mem_free(p->role[r].address[i]);
        pl_mem_free(p->role[r].address);
        p->role[r] = (role_list) { 0 };
    }
}

static bool find_role(const char *name, pl_role *role)
{
    for (int r = 0; r < ROLES; r++)
        if (strcmp(name, pl_role_text((pl_role)r)) == 0) {
            *role = (pl_role)r;
            return true;
        }
    *role = PL_ROLE_CHIEF;
    return strcmp(name, "master") == 0;
}

/* Digits without a leading zero, at most five of them; -1 for others. */
static int32_t read_number(const char *text)
{
    size_t length = strlen(text);
    int32_t value = 0;
    if (length < 1 || length > 5 || (text[0] == '0' && length > 1) ||
        text[strspn(text, "0123456789")] != '\0')
        return -1;
    for (; *text != '\0'; text++)
        value = 10 * value + (*text - '0');
    return value;
}

/* A name or number: letters, digits, '.', '-', '_'; or [IPv6]. */
static bool is_host(const char *host, size_t length)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz"
                                  "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_";
    if (length == 0 || length > HOST_MOST)
        return false;
    if (host[0] != '[')
        return strspn(host, letters) == length;
    return length > 3 && host[length - 1] == ']' &&
           strspn(host + 1, "0123456789abcdefABCDEF:.") == length - 2;
}

static pl_status check_address(const char *address)
{
    const char *colon = strrchr(address, ':');
    if (colon == NULL || !is_host(address, (size_t)(colon - address)))
        return PL_FAIL(PL_FORMAT,
                       "expected \"host:port\" (\"[address]:port\" for IPv6), "
                       "found \"%.80s\"",
                       address);
    int32_t port = read_number(colon + 1);
    if (port < 1 || port > 65535)
        return PL_FAIL(PL_FORMAT,
                       "expected a port from 1 to 65535, found \"%.20s\" in "
                       "\"%.80s\"",
                       colon + 1, address);
    return PL_OK;
}

static pl_status read_address(const parsed *p, const pl_json *json, char **out)
{
    const char *text;
    PL_TRY(pl_json_as_text(json, "address", &text));
    if (p->open && text[0] == '\0')
        return PL_OK; /* *out stays NULL */
    PL_TRY(check_address(text));
    return pl_mem_copy_text(out, text);
}

static pl_status read_list(const parsed *p, const pl_json *json,
                           role_list *list)
{
    for (int32_t i = 0; i < list->count; i++) {
        pl_status status =
            read_address(p, pl_json_at(json, (size_t)i), &list->address[i]);
        if (status != PL_OK)
            return pl_context(status, "[%d]", i);
    }
    return PL_OK;
}

/* {"0": "host:port", "1": ...}, in any order. */
static pl_status read_sparse(const parsed *p, const pl_json *json,
                             role_list *list)
{
    void *walk = NULL;
    const char *key;
    const pl_json *value;
    while (pl_json_next(json, &walk, &key, &value)) {
        int32_t index = read_number(key);
        if (index < 0 || index >= list->count)
            return PL_FAIL(PL_FORMAT,
                           "found task \"%.20s\" among %d; expected all tasks "
                           "from 0 to %d",
                           key, list->count, list->count - 1);
        pl_status status = read_address(p, value, &list->address[index]);
        if (status != PL_OK)
            return pl_context(status, "[%d]", index);
    }
    return PL_OK;
}

/* The tasks of one role: a list, or an object with an index for each. */
static pl_status read_role(parsed *p, pl_role role, const pl_json *json)
{
    static const size_t most[ROLES] = { 1, PL_CLUSTER_WORKERS_MAX,
                                        PL_CLUSTER_PS_MAX, 1 };
    const char *kind = pl_json_kind(json);
    bool list = strcmp(kind, "an array") == 0;
    if (!list && strcmp(kind, "an object") != 0)
        return PL_FAIL(PL_FORMAT,
                       "expected a list of addresses (\"host:port\"), found %s",
                       kind);
    size_t count = pl_json_length(json);
    if (count == 0)
        return PL_FAIL(PL_FORMAT, "expected at least one address, found none; "
                                  "leave the role out when it has no task");
    if (count > most[role])
        return PL_FAIL(PL_FORMAT, "found %zu addresses, expected at most %zu",
                       count, most[role]);
    PL_TRY(PL_NEW(p->role[role].address, count));
    p->role[role].count = (int32_t)count;
    return list ? read_list(p, json, &p->role[role])
                : read_sparse(p, json, &p->role[role]);
}

static pl_status read_roles(parsed *p, const pl_json *roles)
{
    void *walk = NULL;
    const char *key;
    const pl_json *value;
    while (pl_json_next(roles, &walk, &key, &value)) {
        pl_role role;
        if (!find_role(key, &role))
            return PL_FAIL(PL_FORMAT,
                           "expected the roles chief, worker, ps and "
                           "evaluator, found \"%.80s\"",
                           key);
        if (p->role[role].address != NULL)
            return PL_FAIL(PL_FORMAT, "found both chief and master; master is "
                                      "the old name of chief, give one");
        pl_status status = read_role(p, role, value);
        if (status != PL_OK)
            return pl_context(status, "%s", key);
    }
    return PL_OK;
}

/* The number-th address of all roles; NULL at the end, "" when not known. */
static const char *nth_address(const parsed *p, int32_t number, pl_task *task)
{
    for (int r = 0; r < ROLES; r++) {
        const role_list *list = &p->role[r];
        if (number < list->count) {
            *task = (pl_task) { (pl_role)r, number };
            return list->address[number] == NULL ? "" : list->address[number];
        }
        number -= list->count;
    }
    return NULL;
}

/* Two tasks cannot listen at one place.  Names of hosts know no case. */
static pl_status check_distinct(const parsed *p)
{
    const char *one, *other;
    pl_task a, b;
    for (int32_t i = 0; (one = nth_address(p, i, &a)) != NULL; i++)
        for (int32_t j = 0; j < i && one[0] != '\0'; j++) {
            other = nth_address(p, j, &b);
            if (strcasecmp(one, other) == 0)
                return PL_FAIL(PL_FORMAT,
                               "%s %d and %s %d have the same address, %s",
                               pl_role_text(b.role), b.index,
                               pl_role_text(a.role), a.index, one);
        }
    return PL_OK;
}

/* Move the addresses of the chief, then of the workers, to one array; none
 * when no address is known. */
static pl_status join_workers(parsed *p, pl_cluster *out)
{
    role_list *part[] = { &p->role[PL_ROLE_CHIEF], &p->role[PL_ROLE_WORKER] };
    bool known = false;
    int32_t at = 0;
    for (int k = 0; k < 2; k++)
        for (int32_t i = 0; i < part[k]->count; i++)
            known = known || part[k]->address[i] != NULL;
    if (!known)
        return PL_OK;
    PL_TRY(PL_NEW(out->worker_address, (size_t)out->workers));
    for (int k = 0; k < 2; k++)
        for (int32_t i = 0; i < part[k]->count; i++) {
            out->worker_address[at++] = part[k]->address[i];
            part[k]->address[i] = NULL;
        }
    return PL_OK;
}

static pl_status assemble(parsed *p, pl_cluster *out)
{
    role_list *ps = &p->role[PL_ROLE_PS];
    pl_cluster cluster = {
        .named_chief = p->role[PL_ROLE_CHIEF].count > 0,
        .evaluator = p->role[PL_ROLE_EVALUATOR].count > 0,
        .workers = p->role[PL_ROLE_CHIEF].count + p->role[PL_ROLE_WORKER].count,
        .ps = ps->count,
    };
    if (cluster.workers == 0)
        return PL_FAIL(PL_FORMAT, "expected a chief or workers, found none");
    if (cluster.workers > PL_CLUSTER_WORKERS_MAX)
        return PL_FAIL(PL_FORMAT,
                       "found %d workers with the chief, expected at most %d",
                       cluster.workers, PL_CLUSTER_WORKERS_MAX);
    PL_TRY(check_distinct(p));
    PL_TRY(join_workers(p, &cluster));
    cluster.ps_address = ps->address;
    *ps = (role_list) { 0 };
    *out = cluster;
    return PL_OK;
}

/* {"chief": [...], "worker": [...], "ps": [...]} */
static pl_status read_cluster(pl_cluster *out, const pl_json *roles, bool open)
{
    if (strcmp(pl_json_kind(roles), "an object") != 0)
        return PL_FAIL(PL_FORMAT,
                       "expected an object from role to addresses, found %s",
                       pl_json_kind(roles));
    parsed p = { .open = open };
    pl_status status = read_roles(&p, roles);
    if (status == PL_OK)
        status = assemble(&p, out);
    drop(&p);
    return status;
}

/* What is wrong in a cluster is for the user to put right. */
static pl_status as_usage(pl_status status)
{
    return status == PL_FORMAT ? PL_USAGE : status;
}

/* Keys of TF_CONFIG that are no cluster. */
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

/* The entry called `deploy`, or the only one there is. */
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
        return PL_FAIL(PL_USAGE, "--deploy %s: no such entry; there are: %s",
                       deploy, all);
    if (matches == 0)
        return PL_FAIL(PL_FORMAT, "expected {\"cluster\": {role: addresses}}, "
                                  "found no object in it");
    return PL_FAIL(PL_USAGE, "found %d clusters, pick one by --deploy: %s",
                   matches, all);
}

/* True when the object itself goes from role to addresses. */
static bool is_bare(const pl_json *json)
{
    void *walk = NULL;
    const char *key;
    const pl_json *value;
    pl_role role;
    while (pl_json_next(json, &walk, &key, &value))
        if (find_role(key, &role))
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
        return read_cluster(out, json, false);
    PL_TRY(pick_entry(json, deploy, &name, &entry));
    pl_status status;
    if (pl_json_has(entry, "cluster")) { /* an entry in full */
        status = pl_json_get_object(entry, "cluster", &entry);
        if (status != PL_OK)
            return pl_context(status, "%s", name);
    }
    status = read_cluster(out, entry, false);
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
    out->evaluator = true; /* may come, as it needs no address */
    return PL_OK;
}

/* TensorFlow takes a number or its digits. */
static pl_status read_index(const pl_json *task, int32_t *out)
{
    const char *digits;
    int64_t index;
    pl_status status = pl_json_get_int(task, "index", 0, INT32_MAX, &index);
    if (status != PL_OK && pl_json_has(task, "index") &&
        pl_json_get_text(task, "index", &digits) == PL_OK) {
        index = read_number(digits);
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
    if (!find_role(type, &out->role))
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
    PL_TRY(pl_json_get_object(json, "task", &own));
    status = read_task(task, own);
    if (status != PL_OK)
        return pl_context(status, "task");
    status = read_cluster(cluster, roles, false);
    if (status != PL_OK)
        return pl_context(status, "cluster");
    cluster->evaluator = true; /* TensorFlow leaves it out of the cluster */
    status = pl_cluster_check(cluster, *task);
    if (status != PL_OK)
        pl_cluster_close(cluster);
    return status == PL_OK ? PL_OK : pl_context(status, "task");
}

pl_status pl_cluster_tf_config(pl_cluster *out, pl_task *task, const char *text)
{
    pl_json *json;
    pl_cluster cluster;
    pl_task own;
    PL_TRY(as_usage(pl_json_parse(&json, text, strlen(text), "TF_CONFIG")));
    pl_status status = strcmp(pl_json_kind(json), "an object") == 0
                           ? read_tf_config(&cluster, &own, json)
                           : PL_FAIL(PL_FORMAT, "expected an object, found %s",
                                     pl_json_kind(json));
    pl_json_free(json);
    if (status != PL_OK)
        return pl_context(as_usage(status), "TF_CONFIG");
    *out = cluster;
    *task = own;
    return PL_OK;
}

/* Add `count` addresses, from the first, under `role`; none for none. */
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
    pl_status status = read_cluster(out, roles, true);
    return status == PL_OK ? PL_OK : pl_context(status, "cluster");
}
