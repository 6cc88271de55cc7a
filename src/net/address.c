/* address.c - splits "host:port" and resolves the host; decides whether an
 * address is loopback. */
#include "net/address.h"

#include "base/assert.h"

#include <arpa/inet.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

pl_status pl_address_split(pl_address *out, const char *text)
{
    const char *colon = strrchr(text, ':');
    const char *begin = text, *end = colon;
    *out = (pl_address) { .ipv6 = false };
    if (colon != NULL && *begin == '[' && colon > begin && colon[-1] == ']') {
        begin++;
        end--;
    } else if (colon != NULL && memchr(begin, ':', (size_t)(end - begin))) {
        return PL_FAIL(PL_USAGE,
                       "address %s: write an IPv6 address in brackets, such "
                       "as [::1]:4711",
                       text);
    }
    if (colon == NULL || end == begin ||
        (size_t)(end - begin) >= sizeof out->host)
        return PL_FAIL(PL_USAGE,
                       "address \"%s\" is not HOST:PORT, such as "
                       "127.0.0.1:4711",
                       text);
    size_t digits = strspn(colon + 1, "0123456789");
    if (digits == 0 || digits > 5 || colon[1 + digits] != 0 ||
        strtol(colon + 1, NULL, 10) > 65535)
        return PL_FAIL(PL_USAGE, "address %s: port \"%s\" is not 0 to 65535",
                       text, colon + 1);
    memcpy(out->host, begin, (size_t)(end - begin));
    memcpy(out->port, colon + 1, digits + 1);
    return PL_OK;
}

static int resolve_as(pl_address *address, int family)
{
    struct addrinfo hints = { .ai_family = family, .ai_socktype = SOCK_STREAM };
    struct addrinfo *found = NULL;
    int error = getaddrinfo(address->host, NULL, &hints, &found);
    if (error != 0)
        return error;
    char number[256];
    error = getnameinfo(found->ai_addr, found->ai_addrlen, number,
                        sizeof number, NULL, 0, NI_NUMERICHOST);
    freeaddrinfo(found);
    address->ipv6 = family == AF_INET6;
    if (error == 0)
        snprintf(address->numeric, sizeof address->numeric,
                 address->ipv6 ? "[%s]" : "%s", number);
    return error;
}

pl_status pl_address_resolve(pl_address *address)
{
    if (resolve_as(address, AF_INET) == 0)
        return PL_OK;
    int error = resolve_as(address, AF_INET6);
    if (error == 0)
        return PL_OK;
    address->ipv6 = false;
    return PL_FAIL(PL_IO, "host %s: %s", address->host, gai_strerror(error));
}

bool pl_address_is_loopback(const pl_address *address)
{
    return strncmp(address->numeric, "127.", 4) == 0 ||
           strcmp(address->numeric, "[::1]") == 0;
}

void pl_address_socket(const pl_address *address, struct sockaddr_storage *out,
                       socklen_t *bytes)
{
    in_port_t port = htons((uint16_t)strtol(address->port, NULL, 10));
    char number[sizeof address->numeric];
    PL_ASSERT(address->numeric[0] != '\0');
    *out = (struct sockaddr_storage) { .ss_family = AF_UNSPEC };
    if (!address->ipv6) {
        struct sockaddr_in *to = (struct sockaddr_in *)out;
        to->sin_family = AF_INET;
        to->sin_port = port;
        PL_ASSERT(inet_pton(AF_INET, address->numeric, &to->sin_addr) == 1);
        *bytes = sizeof *to;
        return;
    }
    struct sockaddr_in6 *to = (struct sockaddr_in6 *)out;
    snprintf(number, sizeof number, "%s", address->numeric + 1);
    number[strlen(number) - 1] = '\0';
    char *scope = strchr(number, '%'); /* of a link-local address */
    if (scope != NULL) {
        *scope = '\0';
        to->sin6_scope_id = if_nametoindex(scope + 1);
    }
    to->sin6_family = AF_INET6;
    to->sin6_port = port;
    PL_ASSERT(inet_pton(AF_INET6, number, &to->sin6_addr) == 1);
    *bytes = sizeof *to;
}
