/* Before the start: who works where. */
#include "base/mem.h"
#include "dist/launch/many_priv.h"

#include <string.h>

#define TRY_MS  300000
#define PORT_MS 20000

static void add_task(pl_many *m, pl_task id, int32_t worker, int32_t host)
{
    m->tasks[m->count++] =
        (pl_many_task) { .task = id, .worker = worker, .host = host };
}

/* The host of an address that is given, or in turns. */
static int32_t host_of(const pl_many *m, char *const *addresses, int32_t index)
{
    const pl_hosts *hosts = m->crew->hosts;
    int32_t host = addresses != NULL && addresses[index] != NULL
                       ? pl_hosts_find(hosts, addresses[index])
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

pl_status pl_many_deal(pl_many *m)
{
    const pl_cluster *c = m->opts->cluster;
    size_t count = (size_t)c->workers + (size_t)c->ps + c->evaluator;
    PL_TRY(PL_NEW(m->tasks, count));
    PL_TRY(PL_NEW(m->logs, count));
    PL_TRY(pl_cluster_local(&m->cluster, c->workers, c->ps, c->evaluator));
    m->cluster.named_chief = c->named_chief;
    m->cluster.evaluator = false; /* it has no address to tell of */
    PL_TRY(PL_NEW(m->cluster.worker_address, (size_t)c->workers));
    PL_TRY(copy_addresses(m->cluster.worker_address, c->worker_address,
                          c->workers));
    PL_TRY(copy_addresses(m->cluster.ps_address, c->ps_address, c->ps));
    for (int32_t i = 0; i < c->ps; i++)
        add_task(m, (pl_task) { PL_ROLE_PS, i }, -1,
                 host_of(m, c->ps_address, i));
    for (int32_t i = 0; i < c->workers; i++)
        add_task(m, pl_cluster_task(c, i), i, host_of(m, c->worker_address, i));
    if (c->evaluator)
        add_task(m, (pl_task) { PL_ROLE_EVALUATOR, 0 }, -1, 0);
    return PL_OK;
}

/* --- can they? -------------------------------------------------------- */

/* Only who computes or tests needs the data. */
static bool needs_data(const pl_many *m, int32_t host)
{
    for (int i = 0; i < m->count; i++)
        if (m->tasks[i].host == host && m->tasks[i].task.role != PL_ROLE_PS)
            return true;
    return false;
}

static pl_status fill_try(const pl_many *m, int32_t host, pl_json *question)
{
    pl_json *words;
    PL_TRY(pl_json_set_bool(question, "data", needs_data(m, host)));
    PL_TRY(pl_json_set_int(question, "workers", m->cluster.workers));
    PL_TRY(pl_json_set_int(question, "ps", m->cluster.ps));
    PL_TRY(pl_json_set_text(question, "folder", m->opts->folder));
    PL_TRY(pl_json_new_array(&words));
    for (char *const *word = m->opts->argv; *word != NULL; word++) {
        pl_status status = pl_json_append_text(words, *word);
        if (status != PL_OK) {
            pl_json_free(words);
            return status;
        }
    }
    return pl_json_set_take(question, "argv", words);
}

pl_status pl_many_try(pl_many *m)
{
    for (int32_t h = 0; h < m->crew->hosts->count; h++) {
        pl_json *question;
        PL_TRY(pl_talk_new(&question, "try"));
        pl_status status = fill_try(m, h, question);
        if (status != PL_OK) {
            pl_json_free(question);
            return status;
        }
        PL_TRY(pl_crew_ask(m->crew, h, question));
    }
    return pl_crew_wait(m->crew,
                        m->opts->try_ms > 0 ? m->opts->try_ms : TRY_MS);
}

/* --- ports ------------------------------------------------------------ */

/* Where the address of a task is kept; NULL: it has none. */
static char **address_of(const pl_many *m, const pl_many_task *task)
{
    return task->task.role == PL_ROLE_PS
               ? &m->cluster.ps_address[task->task.index]
           : task->worker >= 0 ? &m->cluster.worker_address[task->worker]
                               : NULL;
}

static bool needs_port(const pl_many *m, int i, int32_t host)
{
    char **address = address_of(m, &m->tasks[i]);
    return m->tasks[i].host == host && address != NULL && *address == NULL;
}

static int32_t count_ports(const pl_many *m, int32_t host)
{
    int32_t count = 0;
    for (int i = 0; i < m->count; i++)
        count += needs_port(m, i, host);
    return count;
}

static pl_status ask_ports(pl_many *m, int32_t host, int32_t count)
{
    pl_json *question;
    PL_TRY(pl_talk_new(&question, "ports"));
    pl_status status = pl_json_set_int(question, "count", count);
    if (status == PL_OK)
        status = pl_json_set_text(question, "host",
                                  pl_hosts_address(m->crew->hosts, host));
    if (status != PL_OK) {
        pl_json_free(question);
        return status;
    }
    return pl_crew_ask(m->crew, host, question);
}

static pl_status take_ports(pl_many *m, int32_t host)
{
    const pl_json *answer, *ports;
    size_t next = 0;
    PL_TRY(pl_crew_answer(m->crew, host, &answer));
    PL_TRY(pl_json_get_array(answer, "ports", &ports));
    for (int i = 0; i < m->count; i++) {
        int64_t port;
        if (!needs_port(m, i, host))
            continue;
        PL_TRY(pl_json_int_at(ports, next++, 1, 65535, &port));
        PL_TRY(pl_mem_format(address_of(m, &m->tasks[i]), "%s:%lld",
                             pl_hosts_address(m->crew->hosts, host),
                             (long long)port));
    }
    return PL_OK;
}

pl_status pl_many_find_ports(pl_many *m)
{
    const pl_hosts *hosts = m->crew->hosts;
    for (int32_t h = 0; h < hosts->count; h++) {
        int32_t count = count_ports(m, h);
        if (count > 0)
            PL_TRY(ask_ports(m, h, count));
    }
    PL_TRY(pl_crew_wait(m->crew, PORT_MS));
    for (int32_t h = 0; h < hosts->count; h++)
        if (count_ports(m, h) > 0)
            PL_TRY(take_ports(m, h));
    return PL_OK;
}
