#include "net/endpoint_priv.h"

pl_status pl_endpoint_offer(pl_endpoint *client, char offer[PL_OFFER_BYTES])
{
    (void)client;
    offer[0] = 0;
    return PL_OK;
}

pl_status pl_endpoint_accept(pl_endpoint *server, pl_peer peer,
                             const char *offer, char answer[PL_OFFER_BYTES])
{
    (void)server;
    (void)peer;
    (void)offer;
    answer[0] = 0;
    return PL_OK;
}

pl_status pl_endpoint_complete(pl_endpoint *client, const char *answer)
{
    (void)client;
    (void)answer;
    return PL_OK;
}

bool pl_endpoint_shared(const pl_endpoint *endpoint, pl_peer peer)
{
    (void)endpoint;
    (void)peer;
    return false;
}
