/* The queries that a caller may make while a request is under way: which floats
 * have arrived, and which server has not answered. */
#include "sync/ps/worker/client_priv.h"

#include <string.h>

bool pl_ps_client_busy(const pl_ps_client *client)
{
    return client->joining || client->rest || pl_ps_client_awaited(client) >= 0;
}

bool pl_ps_client_answered(const pl_ps_client *client)
{
    return client->links[0].stage >= PL_LINK_ANSWERING;
}

/* Floats [*first, *first + *count) that lie in the link's partition. */
static bool overlap(const pl_link *l, int64_t *first, int64_t *count)
{
    int64_t begin = l->in.first > *first ? l->in.first : *first;
    int64_t end = l->in.first + l->in.count;
    if (end > *first + *count)
        end = *first + *count;
    *first = begin;
    *count = end - begin;
    return begin < end;
}

int32_t pl_ps_client_missing(const pl_ps_client *client, int64_t first,
                             int64_t count)
{
    for (int32_t j = 0; j < client->opts.ps; j++) {
        const pl_link *l = &client->links[j];
        int64_t from = first, n = count;
        if (l->stage != PL_LINK_DONE && overlap(l, &from, &n) &&
            (l->stage != PL_LINK_ANSWERING || !pl_pieces_have(&l->in, from, n)))
            return j;
    }
    return -1;
}

bool pl_ps_client_have(const pl_ps_client *client, int64_t first, int64_t count)
{
    return !client->rest && pl_ps_client_missing(client, first, count) < 0;
}

int32_t pl_ps_client_absent(const pl_ps_client *client)
{
    for (int32_t j = 0; j < client->opts.ps; j++)
        if (!client->links[j].joined)
            return j;
    return -1;
}

int32_t pl_ps_client_awaited(const pl_ps_client *client)
{
    for (int32_t j = 0; j < client->opts.ps; j++)
        if (client->links[j].stage == PL_LINK_ASKING ||
            client->links[j].stage == PL_LINK_ANSWERING)
            return j;
    return -1;
}

bool pl_ps_client_windowed(const pl_ps_client *client)
{
    return pl_pieces_windowed(&client->links[0].in);
}

pl_ps_client_view pl_ps_client_look(const pl_ps_client *client)
{
    pl_ps_client_view view = client->view;
    view.coding_seconds = client->coder.seconds;
    view.generation = client->generation;
    view.why = client->saved_why;
    return view;
}

const pl_deal *pl_ps_client_dealt(const pl_ps_client *client,
                                  pl_workers *present)
{
    *present = client->present;
    return &client->deal;
}

const int64_t *pl_ps_client_counts(const pl_ps_client *client)
{
    return client->counts;
}

bool pl_ps_client_rolled(const pl_ps_client *client)
{
    return client->rolled;
}

pl_status pl_ps_client_outcome(const pl_ps_client *client)
{
    if (client->failed &&
        strstr(client->why, PL_STOP_INTERRUPT PL_STOP_EARLY) != NULL)
        return PL_FAIL(PL_INTERRUPTED, "interrupted" PL_STOP_EARLY);
    if (client->failed)
        return PL_FAIL(PL_CLOSED, "%s", client->why);
    return PL_OK;
}
