/* The roles of a cluster and their addresses.
 *
 * The formats are TensorFlow's: a role has a list of addresses, or an object
 * from index to address.  TensorFlow's object may omit tasks; here all must be
 * named, since their number determines the data shares.  Between our own
 * processes an address may be "": unknown, or of a task that does not
 * listen. */
#include "job/cluster/cluster_priv.h"

#include "base/mem.h"
#include "net/address.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define HOST_MOST 255
#define ROLES     4

/* The addresses of one role. */
typedef struct role_list {
    char **address; /* NULL: the role was not named */
    int32_t count;
} role_list;

typedef struct parsed {
    role_list role[ROLES]; /* by pl_role */
    bool open;             /* "" is accepted as an address */
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

bool pl_cluster_role(const char *name, pl_role *role)
{
    for (int r = 0; r < ROLES; r++)
        if (strcmp(name, pl_role_text((pl_role)r)) == 0) {
            *role = (pl_role)r;
            return true;
        }
    *role = PL_ROLE_CHIEF;
    return strcmp(name, "master") == 0;
}

int32_t pl_cluster_number(const char *text)
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
    int32_t port = pl_cluster_number(colon + 1);
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
        int32_t index = pl_cluster_number(key);
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
        if (!pl_cluster_role(key, &role))
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

/* The number-th address of all roles; NULL at the end, "" if unknown. */
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

/* Host names are case-insensitive, and "localhost" is 127.0.0.1. */
static bool same_place(const char *one, const char *other)
{
    pl_address a, b;
    if (pl_address_split(&a, one) != PL_OK ||
        pl_address_split(&b, other) != PL_OK)
        return strcasecmp(one, other) == 0;
    const char *hosts[] = { a.host, b.host };
    for (int i = 0; i < 2; i++)
        if (strcasecmp(hosts[i], "localhost") == 0)
            hosts[i] = "127.0.0.1";
    return strcasecmp(hosts[0], hosts[1]) == 0 &&
           strtol(a.port, NULL, 10) == strtol(b.port, NULL, 10);
}

/* Two tasks cannot listen at the same address. */
static pl_status check_distinct(const parsed *p)
{
    const char *one, *other;
    pl_task a, b;
    for (int32_t i = 0; (one = nth_address(p, i, &a)) != NULL; i++)
        for (int32_t j = 0; j < i && one[0] != '\0'; j++) {
            other = nth_address(p, j, &b);
            if (same_place(one, other))
                return PL_FAIL(PL_FORMAT,
                               "%s %d and %s %d have the same address, %s",
                               pl_role_text(b.role), b.index,
                               pl_role_text(a.role), a.index, one);
        }
    return PL_OK;
}

/* Move the addresses of the chief, then of the workers, to one array; no array
 * if no address is known. */
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

pl_status pl_cluster_roles(pl_cluster *out, const pl_json *roles, bool open)
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
