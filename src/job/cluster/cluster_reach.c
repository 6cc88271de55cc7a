/* Whether the address at which a task should listen is a name for loopback, and
 * whether that matters: it does if another task is on another host. */
#include "job/cluster/cluster_reach.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

/* A name other than the one that means loopback by definition. */
static bool is_host_name(const pl_address *address)
{
    uint8_t number[16];
    return inet_pton(AF_INET, address->host, number) != 1 &&
           inet_pton(AF_INET6, address->host, number) != 1 &&
           strcasecmp(address->host, "localhost") != 0;
}

static const char *address_of(const pl_cluster *cluster, pl_task task)
{
    if (task.role == PL_ROLE_PS)
        return cluster->ps_address == NULL ? NULL
                                           : cluster->ps_address[task.index];
    int32_t worker = pl_cluster_worker(cluster, task);
    return cluster->ps > 0 || worker < 0 || cluster->worker_address == NULL
               ? NULL
               : cluster->worker_address[worker];
}

/* Whether the address is on another host.  A name that does not resolve here
 * may be. */
static bool is_elsewhere(const char *text, const char *own_host,
                         pl_cluster_resolver *resolve)
{
    pl_address address;
    if (text == NULL || pl_address_split(&address, text) != PL_OK ||
        strcasecmp(address.host, own_host) == 0)
        return false;
    return resolve(&address) != PL_OK || !pl_address_is_loopback(&address);
}

/* The first task on another host, as "worker 1 at node1:4711". */
static bool find_elsewhere(const pl_cluster *cluster, const char *own_host,
                           pl_cluster_resolver *resolve, char *out, size_t room)
{
    for (int32_t i = 0; i < cluster->ps && cluster->ps_address != NULL; i++)
        if (is_elsewhere(cluster->ps_address[i], own_host, resolve)) {
            snprintf(out, room, "ps %d at %s", i, cluster->ps_address[i]);
            return true;
        }
    for (int32_t i = 0; i < cluster->workers && cluster->worker_address != NULL;
         i++)
        if (is_elsewhere(cluster->worker_address[i], own_host, resolve)) {
            snprintf(out, room, "worker %d at %s", i,
                     cluster->worker_address[i]);
            return true;
        }
    return false;
}

/* ", such as 10.0.0.7:4711", an address of an interface of this host that is
 * up. */
static void suggest(char *out, size_t room, const char *port)
{
    struct ifaddrs *all = NULL;
    char number[INET_ADDRSTRLEN];
    out[0] = '\0';
    if (getifaddrs(&all) != 0)
        return;
    for (const struct ifaddrs *at = all; at != NULL; at = at->ifa_next) {
        if (at->ifa_addr == NULL || at->ifa_addr->sa_family != AF_INET ||
            (at->ifa_flags & IFF_LOOPBACK) != 0 ||
            (at->ifa_flags & IFF_UP) == 0)
            continue;
        const struct sockaddr_in *in = (const void *)at->ifa_addr;
        if (inet_ntop(AF_INET, &in->sin_addr, number, sizeof number) != NULL) {
            snprintf(out, room, ", such as %s:%s,", number, port);
            break;
        }
    }
    freeifaddrs(all);
}

pl_status pl_cluster_check_reach(const pl_cluster *cluster, pl_task task,
                                 pl_cluster_resolver *resolve, bool *only_here)
{
    pl_address own;
    char other[PL_ADDRESS_BYTES + 32], such_as[64];
    const char *text = address_of(cluster, task);
    *only_here = false;
    if (text == NULL || pl_address_split(&own, text) != PL_OK ||
        !is_host_name(&own) || resolve(&own) != PL_OK ||
        !pl_address_is_loopback(&own))
        return PL_OK; /* a bad address is reported when it listens */
    if (!find_elsewhere(cluster, own.host, resolve, other, sizeof other)) {
        *only_here = true;
        return PL_OK;
    }
    suggest(such_as, sizeof such_as, own.port);
    return PL_FAIL(PL_USAGE,
                   "%s %d at %s: on this host %s means %s, where %s cannot "
                   "reach it; write an address that the other hosts can reach"
                   "%s in the cluster, or change the line of %s in /etc/hosts",
                   pl_role_text(task.role), task.index, text, own.host,
                   own.numeric, other, such_as, own.host);
}
