/* hosts.c - requests facts and clock of every host, then measures latency and
 * bandwidth between pairs of hosts. */
#include "app/doctor/doctor.h"
#include "app/train/interrupt.h"
#include "base/clock.h"
#include "base/mem.h"
#include "net/keys.h"
#include "net/probe/probe.h"

#include <stdio.h>
#include <string.h>

#define ASK_MS 30000
#define CLOCKS 5 /* requests for the time */

typedef struct patients {
    pl_diagnosis *d;
    pl_launch_hosts *hosts;
    int64_t measure_ms;
    char token[PL_PROBE_TOKEN + 1];
    int32_t *port; /* [hosts] */
} patients;

static const char *name_of(const patients *p, int32_t host)
{
    return p->hosts->list.name[host];
}

/* Send one host a request without parameters, and wait. */
static pl_status ask(patients *p, int32_t host, const char *kind,
                     const pl_json **answer)
{
    pl_json *question;
    PL_TRY(pl_agent_channel_new(&question, kind));
    PL_TRY(pl_hosts_ask(&p->hosts->hosts, host, question));
    PL_TRY(pl_hosts_wait(&p->hosts->hosts, ASK_MS));
    return pl_hosts_answer(&p->hosts->hosts, host, answer);
}

/* The reply with the shortest round trip is the most accurate. */
static pl_status look_at_clock(patients *p, int32_t host)
{
    double best_ms = 1e30, offset_ms = 0;
    for (int i = 0; i < CLOCKS; i++) {
        const pl_json *answer;
        int64_t there, before = pl_clock_wall_ns();
        PL_TRY(ask(p, host, "clock", &answer));
        int64_t after = pl_clock_wall_ns();
        PL_TRY(pl_json_get_int(answer, "wall_ns", 0, INT64_MAX, &there));
        double within_ms = (double)(after - before) * 0.5e-6;
        if (within_ms < best_ms) {
            best_ms = within_ms;
            offset_ms = (double)(there - before) * 1e-6 - within_ms;
        }
    }
    return pl_doctor_judge_clock(p->d, name_of(p, host), offset_ms, best_ms);
}

static pl_status look_at_facts(patients *p)
{
    for (int32_t h = 0; h < p->hosts->list.count; h++) {
        const pl_json *facts;
        PL_TRY(ask(p, h, "facts", &facts));
        PL_TRY(pl_doctor_judge(p->d, name_of(p, h), facts));
        PL_TRY(look_at_clock(p, h));
    }
    return PL_OK;
}

/* --- the links ------------------------------------------------------- */

/* The port of a task of the cluster on this host; 0: any port. */
static int32_t port_of_cluster(const patients *p, int32_t host)
{
    const pl_cluster *c = &p->hosts->cluster;
    char **lists[] = { c->ps_address, c->worker_address };
    int32_t counts[] = { c->ps, c->workers };
    for (int k = 0; k < 2; k++)
        for (int32_t i = 0; lists[k] != NULL && i < counts[k]; i++)
            if (pl_host_list_find(&p->hosts->list, lists[k][i]) == host) {
                const char *port = strrchr(lists[k][i], ':') + 1;
                int32_t number = 0;
                for (; *port != '\0'; port++)
                    number = 10 * number + (*port - '0');
                return number;
            }
    return 0;
}

static pl_status ask_listen(patients *p, int32_t host)
{
    pl_json *question;
    char *address;
    PL_TRY(pl_agent_channel_new(&question, "listen"));
    pl_status status = pl_mem_format(
        &address, "%s:%d", pl_host_list_address(&p->hosts->list, host),
        port_of_cluster(p, host));
    if (status == PL_OK) {
        status = pl_json_set_text(question, "address", address);
        pl_mem_free(address);
    }
    if (status == PL_OK)
        status = pl_json_set_text(question, "token", p->token);
    if (status != PL_OK) {
        pl_json_free(question);
        return status;
    }
    return pl_hosts_ask(&p->hosts->hosts, host, question);
}

static pl_status open_ports(patients *p)
{
    char found[64];
    for (int32_t h = 0; h < p->hosts->list.count; h++) {
        const pl_json *answer;
        int64_t port;
        PL_TRY(ask_listen(p, h));
        if (pl_hosts_wait(&p->hosts->hosts, ASK_MS) != PL_OK) {
            PL_TRY(pl_diagnosis_add(p->d, name_of(p, h), "port",
                                    PL_SEVERITY_BAD, "cannot listen",
                                    pl_error_message()));
            continue;
        }
        PL_TRY(pl_hosts_answer(&p->hosts->hosts, h, &answer));
        PL_TRY(pl_json_get_int(answer, "port", 1, 65535, &port));
        p->port[h] = (int32_t)port;
        snprintf(found, sizeof found, "%lld is free", (long long)port);
        PL_TRY(pl_diagnosis_add(p->d, name_of(p, h), "port", PL_SEVERITY_OK,
                                found, NULL));
    }
    return PL_OK;
}

static pl_status fill_measure(const patients *p, int32_t to, pl_json *question)
{
    char *address;
    PL_TRY(pl_json_set_text(question, "token", p->token));
    PL_TRY(pl_json_set_int(question, "ms", p->measure_ms));
    PL_TRY(pl_mem_format(&address, "%s:%d",
                         pl_host_list_address(&p->hosts->list, to),
                         p->port[to]));
    pl_status status = pl_json_set_text(question, "address", address);
    pl_mem_free(address);
    return status;
}

static pl_status keep_way(patients *p, int32_t from, int32_t to,
                          const pl_json *answer)
{
    pl_way way = { .from = (char *)name_of(p, from),
                   .to = (char *)name_of(p, to) };
    PL_TRY(pl_json_get_real(answer, "round_trip_us", &way.round_trip_us));
    PL_TRY(pl_json_get_real(answer, "bytes_per_s", &way.bytes_per_s));
    return pl_doctor_judge_way(p->d, &way);
}

/* Links are measured one at a time, as they would disturb each other. */
static pl_status measure(patients *p, int32_t from, int32_t to)
{
    pl_json *question;
    const pl_json *answer;
    char way[160];
    PL_TRY(pl_agent_channel_new(&question, "measure"));
    pl_status status = fill_measure(p, to, question);
    if (status != PL_OK) {
        pl_json_free(question);
        return status;
    }
    PL_TRY(pl_hosts_ask(&p->hosts->hosts, from, question));
    status = pl_hosts_wait(&p->hosts->hosts, ASK_MS + p->measure_ms);
    if (status == PL_OK) {
        PL_TRY(pl_hosts_answer(&p->hosts->hosts, from, &answer));
        return keep_way(p, from, to, answer);
    }
    if (status == PL_INTERRUPTED)
        return status;
    snprintf(way, sizeof way, "%.60s > %.60s", name_of(p, from),
             name_of(p, to));
    return pl_diagnosis_add(p->d, way, "network", PL_SEVERITY_BAD,
                            "no connection", pl_error_message());
}

static pl_status look_at_ways(patients *p)
{
    PL_TRY(open_ports(p));
    for (int32_t from = 0; from < p->hosts->list.count; from++)
        for (int32_t to = 0; to < p->hosts->list.count; to++)
            if (from != to && p->port[to] > 0)
                PL_TRY(measure(p, from, to));
    return PL_OK;
}

pl_status pl_doctor_hosts(pl_diagnosis *d, const pl_launch_flags *flags,
                          int64_t measure_ms)
{
    pl_launch_hosts hosts;
    pl_secret random;
    char text[PL_SECRET_TEXT];
    patients p = { .d = d, .hosts = &hosts, .measure_ms = measure_ms };
    PL_TRY(pl_secret_make(&random));
    pl_secret_text(&random, text);
    memcpy(p.token, text, PL_PROBE_TOKEN);
    PL_TRY(pl_launch_hosts_init(&hosts, flags, pl_interrupt_catch()));
    pl_status status = PL_NEW(p.port, (size_t)hosts.list.count);
    if (status == PL_OK)
        status = look_at_facts(&p);
    if (status == PL_OK)
        status = look_at_ways(&p);
    pl_mem_free(p.port);
    pl_launch_hosts_close(&hosts);
    return status;
}
