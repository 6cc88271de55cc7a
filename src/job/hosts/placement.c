/* Before the start of a cluster launch: decides on which host each task runs
 * and at which address, and checks that the hosts can run their tasks. */
#include "base/mem.h"
#include "job/hosts/cluster_launch_priv.h"

#include <string.h>

#define TRY_MS  300000
#define PORT_MS 20000

/* The host of the given address, or else round-robin. */
static int32_t host_of(const pl_cluster_launch *l, char *const *addresses,
                       int32_t index)
{
    const pl_host_list *hosts = l->hosts->list;
    int32_t host = addresses != NULL && addresses[index] != NULL
                       ? pl_host_list_find(hosts, addresses[index])
                       : -1;
    return host >= 0 ? host : index % hosts->count;
}

static pl_status copy_addresses(char **to, char *const *from, int32_t count)
{
    for (int32_t i = 0; from != NULL && i < count; i++)
        if (from[i] != NULL)
            PL_TRY(pl_mem_copy_text(&to[i], from[i]));
    return PL_OK;
}

pl_status pl_cluster_launch_place(pl_cluster_launch *l)
{
    const pl_cluster *c = l->opts->cluster;
    PL_TRY(
        PL_NEW(l->host_of, (size_t)c->workers + (size_t)c->ps + c->evaluator));
    PL_TRY(pl_cluster_local(&l->cluster, c->workers, c->ps, c->evaluator));
    l->cluster.named_chief = c->named_chief;
    l->cluster.evaluator = false; /* it has no address */
    PL_TRY(PL_NEW(l->cluster.worker_address, (size_t)c->workers));
    PL_TRY(copy_addresses(l->cluster.worker_address, c->worker_address,
                          c->workers));
    PL_TRY(copy_addresses(l->cluster.ps_address, c->ps_address, c->ps));
    for (int32_t i = 0; i < c->ps; i++)
        l->host_of[l->count++] = host_of(l, c->ps_address, i);
    for (int32_t i = 0; i < c->workers; i++)
        l->host_of[l->count++] = host_of(l, c->worker_address, i);
    if (c->evaluator)
        l->host_of[l->count++] = 0;
    return PL_OK;
}

/* --- checks ----------------------------------------------------------- */

/* Only hosts that compute or test need the data. */
static bool needs_data(const pl_cluster_launch *l, int32_t host)
{
    for (int i = l->cluster.ps; i < l->count; i++)
        if (l->host_of[i] == host)
            return true;
    return false;
}

static pl_status fill_try(const pl_cluster_launch *l, int32_t host,
                          pl_json *question)
{
    pl_json *words;
    PL_TRY(pl_json_set_bool(question, "data", needs_data(l, host)));
    PL_TRY(pl_json_set_int(question, "workers", l->cluster.workers));
    PL_TRY(pl_json_set_int(question, "ps", l->cluster.ps));
    PL_TRY(pl_json_new_array(&words));
    char *const *word = l->runs != NULL ? l->runs[host].argv : l->opts->argv;
    for (; *word != NULL; word++) {
        pl_status status = pl_json_append_text(words, *word);
        if (status != PL_OK) {
            pl_json_free(words);
            return status;
        }
    }
    return pl_json_set_take(question, "argv", words);
}

pl_status pl_cluster_launch_try(pl_cluster_launch *l)
{
    for (int32_t h = 0; h < l->hosts->list->count; h++) {
        pl_json *question;
        PL_TRY(pl_agent_channel_new(&question, "try"));
        pl_status status = fill_try(l, h, question);
        if (status != PL_OK) {
            pl_json_free(question);
            return status;
        }
        PL_TRY(pl_hosts_ask(l->hosts, h, question));
    }
    return pl_hosts_wait(l->hosts,
                         l->opts->try_ms > 0 ? l->opts->try_ms : TRY_MS);
}

/* --- ports ------------------------------------------------------------ */

/* Where the address of a task is stored; NULL: it has none. */
static char **address_of(const pl_cluster_launch *l, int task)
{
    int worker = task - l->cluster.ps;
    return worker < 0                    ? &l->cluster.ps_address[task]
           : worker < l->cluster.workers ? &l->cluster.worker_address[worker]
                                         : NULL;
}

static bool needs_port(const pl_cluster_launch *l, int task, int32_t host)
{
    char **address = address_of(l, task);
    return l->host_of[task] == host && address != NULL && *address == NULL;
}

static int32_t count_ports(const pl_cluster_launch *l, int32_t host)
{
    int32_t count = 0;
    for (int i = 0; i < l->count; i++)
        count += needs_port(l, i, host);
    return count;
}

static pl_status ask_ports(pl_cluster_launch *l, int32_t host, int32_t count)
{
    pl_json *question;
    PL_TRY(pl_agent_channel_new(&question, "ports"));
    pl_status status = pl_json_set_int(question, "count", count);
    if (status == PL_OK)
        status = pl_json_set_text(question, "host",
                                  pl_host_list_address(l->hosts->list, host));
    if (status != PL_OK) {
        pl_json_free(question);
        return status;
    }
    return pl_hosts_ask(l->hosts, host, question);
}

static pl_status take_ports(pl_cluster_launch *l, int32_t host)
{
    const pl_json *answer, *ports;
    size_t next = 0;
    PL_TRY(pl_hosts_answer(l->hosts, host, &answer));
    PL_TRY(pl_json_get_array(answer, "ports", &ports));
    for (int i = 0; i < l->count; i++) {
        int64_t port;
        if (!needs_port(l, i, host))
            continue;
        PL_TRY(pl_json_int_at(ports, next++, 1, 65535, &port));
        PL_TRY(pl_mem_format(address_of(l, i), "%s:%lld",
                             pl_host_list_address(l->hosts->list, host),
                             (long long)port));
    }
    return PL_OK;
}

pl_status pl_cluster_launch_find_ports(pl_cluster_launch *l)
{
    const pl_host_list *hosts = l->hosts->list;
    for (int32_t h = 0; h < hosts->count; h++) {
        int32_t count = count_ports(l, h);
        if (count > 0)
            PL_TRY(ask_ports(l, h, count));
    }
    PL_TRY(pl_hosts_wait(l->hosts, PORT_MS));
    for (int32_t h = 0; h < hosts->count; h++)
        if (count_ports(l, h) > 0)
            PL_TRY(take_ports(l, h));
    return PL_OK;
}
