/* How two ends agree on an upgrade of their connection: which of the allowed
 * transports a client offers, which one an offer names, and when both stay
 * with the connection. */
#include "base/assert.h"
#include "base/log.h"
#include "net/endpoint_priv.h"

#include <string.h>

/* Staying without the upgrade is not a failure, but worth a debug line. */
static pl_status stay(const pl_endpoint *e, const pl_transport *row,
                      pl_status status)
{
    if (status == PL_OK || status == PL_NOMEM)
        return status;
    pl_log(PL_LOG_DEBUG, "%s: no upgrade to %s: %s", e->name, row->name,
           pl_error_message());
    return PL_OK;
}

void pl_endpoint_downgrade(pl_endpoint *e, pl_peer peer)
{
    PL_ASSERT(peer >= 0 && peer < e->peers.count);
    pl_route *route = e->peers.entries[peer].upgrade;
    if (route != NULL)
        route->transport->upgrade->drop(route, peer);
}

/* Make room for one more peer; the first one opens the route. */
static pl_status open_route(pl_endpoint *e, int row)
{
    bool first = e->routes[row] == NULL;
    if (first)
        PL_TRY(e->rows[row]->open(&e->routes[row], e, NULL));
    pl_status status = pl_endpoint_need_polls(e, 1);
    if (status != PL_OK && first) {
        e->rows[row]->close(e->routes[row], 0);
        e->routes[row] = NULL;
    }
    return status;
}

/* Undo the agreement when `status` is a failure. */
static pl_status settle(pl_endpoint *e, pl_peer peer, char *text,
                        pl_status status)
{
    if (status != PL_OK) {
        pl_endpoint_downgrade(e, peer);
        text[0] = '\0';
    }
    return status;
}

static pl_status make_offer(pl_endpoint *client, int row,
                            char offer[PL_OFFER_BYTES])
{
    PL_TRY(open_route(client, row));
    pl_status status =
        client->rows[row]->upgrade->offer(client->routes[row], offer);
    return settle(client, 0, offer, status);
}

pl_status pl_endpoint_offer(pl_endpoint *client, char offer[PL_OFFER_BYTES])
{
    PL_ASSERT(!client->server);
    offer[0] = '\0';
    pl_endpoint_downgrade(client, 0);
    for (int i = 1; i < client->row_count && offer[0] == '\0'; i++)
        PL_TRY(stay(client, client->rows[i], make_offer(client, i, offer)));
    return PL_OK;
}

/* The row that an offer names; 0, the connection: no allowed one. */
static int row_of(const pl_endpoint *e, const char *offer)
{
    for (int i = 1; i < e->row_count; i++) {
        const char *mark = e->rows[i]->upgrade->mark;
        if (strncmp(offer, mark, strlen(mark)) == 0)
            return i;
    }
    return 0;
}

static pl_status accept_offer(pl_endpoint *server, int row, pl_peer peer,
                              const char *offer, char answer[PL_OFFER_BYTES])
{
    PL_TRY(open_route(server, row));
    pl_route *route = server->routes[row];
    if (server->peers.entries[peer].upgrade != route)
        pl_endpoint_downgrade(server, peer);
    pl_status status =
        route->transport->upgrade->accept(route, peer, offer, answer);
    return settle(server, peer, answer, status);
}

pl_status pl_endpoint_accept(pl_endpoint *server, pl_peer peer,
                             const char *offer, char answer[PL_OFFER_BYTES])
{
    PL_ASSERT(server->server);
    answer[0] = '\0';
    int row = row_of(server, offer);
    if (row > 0)
        return stay(server, server->rows[row],
                    accept_offer(server, row, peer, offer, answer));
    pl_endpoint_downgrade(server, peer);
    return PL_OK;
}

pl_status pl_endpoint_complete(pl_endpoint *client, const char *answer)
{
    PL_ASSERT(!client->server);
    pl_route *route = client->peers.entries[0].upgrade;
    if (route == NULL)
        return PL_OK;
    if (answer[0] == '\0') {
        pl_endpoint_downgrade(client, 0);
        return PL_OK;
    }
    pl_status status = route->transport->upgrade->complete(route, answer);
    if (status != PL_OK)
        pl_endpoint_downgrade(client, 0);
    return stay(client, route->transport, status);
}

bool pl_endpoint_shared(const pl_endpoint *e, pl_peer peer)
{
    PL_ASSERT(peer >= 0 && peer < e->peers.count);
    const pl_route *route = e->peers.entries[peer].upgrade;
    return route != NULL && route->transport->upgrade->serves(route, peer);
}

pl_status pl_endpoint_check(const pl_endpoint *e, pl_peer peer,
                            const char *what)
{
    const pl_transport *wanted = e->wanted;
    if (wanted == NULL || wanted->upgrade == NULL ||
        pl_endpoint_shared(e, peer))
        return PL_OK;
    return PL_FAIL(PL_USAGE, "--transport %s does not reach %s: it needs %s",
                   wanted->name, what, wanted->upgrade->needs);
}
