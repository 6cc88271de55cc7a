/* The names of hosts: decides which texts are host names, and expands Slurm's
 * ranges. */
#include "job/hosts/host_list.h"

#include "base/mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define NAME_MOST   255
#define DIGITS_MOST 9

static pl_status add(pl_host_list *hosts, const char *name, size_t length)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz"
                                  "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_@:[]";
    char text[NAME_MOST + 1];
    if (length == 0 || length > NAME_MOST)
        return PL_FAIL(PL_USAGE,
                       "a host name of %zu characters, expected 1 to "
                       "%d",
                       length, NAME_MOST);
    memcpy(text, name, length);
    text[length] = '\0';
    /* ssh would take a name with a leading dash for an option. */
    if (strspn(text, letters) != length || text[0] == '-')
        return PL_FAIL(PL_USAGE,
                       "\"%s\" is not the name of a host, such as b or me@b",
                       text);
    for (int32_t i = 0; i < hosts->count; i++)
        if (strcasecmp(hosts->name[i], text) == 0)
            return PL_FAIL(PL_USAGE, "host %s is named twice", text);
    if (hosts->count == PL_HOST_LIST_MAX)
        return PL_FAIL(PL_USAGE, "more than %d hosts", PL_HOST_LIST_MAX);
    PL_TRY(pl_mem_copy_text(&hosts->name[hosts->count], text));
    hosts->count++;
    return PL_OK;
}

static pl_status open_hosts(pl_host_list *hosts)
{
    *hosts = (pl_host_list) { 0 };
    return PL_NEW(hosts->name, PL_HOST_LIST_MAX);
}

static pl_status close_on_failure(pl_host_list *hosts, pl_status status)
{
    if (status != PL_OK)
        pl_host_list_close(hosts);
    return status;
}

static pl_status parse(pl_host_list *hosts, const char *text)
{
    for (;;) {
        size_t length = strcspn(text, ",");
        PL_TRY(add(hosts, text, length));
        if (text[length] == '\0')
            return PL_OK;
        text += length + 1;
    }
}

pl_status pl_host_list_parse(pl_host_list *out, const char *text)
{
    PL_TRY(open_hosts(out));
    return close_on_failure(out, parse(out, text));
}

/* --- Slurm ------------------------------------------------------------ */

/* Read digits as a number and their width; false: none, or too many. */
static bool take_number(const char **at, long *number, int *width)
{
    size_t digits = strspn(*at, "0123456789");
    if (digits == 0 || digits > DIGITS_MOST)
        return false;
    *number = strtol(*at, NULL, 10);
    *width = (int)digits;
    *at += digits;
    return true;
}

/* "1-3" or "7" after a prefix. */
static pl_status add_range(pl_host_list *hosts, const char *prefix,
                           size_t length, const char **at)
{
    long first, last;
    int width, other;
    if (!take_number(at, &first, &width))
        return PL_FAIL(PL_USAGE, "expected a number at \"%s\"", *at);
    last = first;
    if (**at == '-') {
        (*at)++;
        if (!take_number(at, &last, &other) || last < first)
            return PL_FAIL(PL_USAGE, "expected a number from %ld on at \"%s\"",
                           first, *at);
    }
    for (long n = first; n <= last; n++) {
        char name[NAME_MOST + DIGITS_MOST + 1];
        int bytes = snprintf(name, sizeof name, "%.*s%0*ld", (int)length,
                             prefix, width, n);
        PL_TRY(add(hosts, name, bytes > 0 ? (size_t)bytes : 0));
    }
    return PL_OK;
}

/* One name, or a prefix with numbers in brackets. */
static pl_status add_group(pl_host_list *hosts, const char **at)
{
    const char *prefix = *at;
    size_t length = strcspn(prefix, ",[");
    *at += length;
    if (length > NAME_MOST - DIGITS_MOST || **at != '[')
        return add(hosts, prefix, length);
    do {
        (*at)++;
        PL_TRY(add_range(hosts, prefix, length, at));
    } while (**at == ',');
    if (**at != ']')
        return PL_FAIL(PL_USAGE, "expected \"]\" at \"%s\"", *at);
    (*at)++;
    return PL_OK;
}

static pl_status parse_slurm(pl_host_list *hosts, const char *at)
{
    for (;;) {
        PL_TRY(add_group(hosts, &at));
        if (*at == '\0')
            return PL_OK;
        if (*at != ',')
            return PL_FAIL(PL_USAGE, "expected \",\" at \"%s\"", at);
        at++;
    }
}

pl_status pl_host_list_slurm(pl_host_list *out, const char *nodes)
{
    PL_TRY(open_hosts(out));
    pl_status status = parse_slurm(out, nodes);
    if (status != PL_OK)
        pl_context(status, "nodes of Slurm, \"%.200s\"", nodes);
    return close_on_failure(out, status);
}

/* --- of a cluster ----------------------------------------------------- */

static pl_status add_address(pl_host_list *hosts, const char *address)
{
    if (address == NULL || pl_host_list_find(hosts, address) >= 0)
        return PL_OK;
    return add(hosts, address, (size_t)(strrchr(address, ':') - address));
}

static pl_status add_cluster(pl_host_list *hosts, const pl_cluster *cluster)
{
    for (int32_t w = 0; cluster->worker_address != NULL && w < cluster->workers;
         w++)
        PL_TRY(add_address(hosts, cluster->worker_address[w]));
    for (int32_t p = 0; p < cluster->ps; p++)
        PL_TRY(add_address(hosts, cluster->ps_address[p]));
    return PL_OK;
}

pl_status pl_host_list_of_cluster(pl_host_list *out, const pl_cluster *cluster)
{
    PL_TRY(open_hosts(out));
    return close_on_failure(out, add_cluster(out, cluster));
}

void pl_host_list_close(pl_host_list *hosts)
{
    for (int32_t i = 0; i < hosts->count; i++)
        pl_mem_free(hosts->name[i]);
    pl_mem_free(hosts->name);
    *hosts = (pl_host_list) { 0 };
}

const char *pl_host_list_address(const pl_host_list *hosts, int32_t host)
{
    const char *at = strrchr(hosts->name[host], '@');
    return at != NULL ? at + 1 : hosts->name[host];
}

int32_t pl_host_list_find(const pl_host_list *hosts, const char *address)
{
    size_t length = (size_t)(strrchr(address, ':') - address);
    for (int32_t i = 0; i < hosts->count; i++) {
        const char *host = pl_host_list_address(hosts, i);
        if (strlen(host) == length && strncasecmp(host, address, length) == 0)
            return i;
    }
    return -1;
}
