/* Requests for sparse parameters: the keys of a batch are split by server, and
 * keys, gradients and values are sent in one message per server. */
#include "base/mem.h"
#include "sync/ps/messages/key_list.h"
#include "sync/ps/worker/client_priv.h"

#include <string.h>

/* Memory for a message of up to `bytes`: shared if it fits. */
static bool message_room(pl_ps_client *client, int32_t ps, size_t bytes)
{
    pl_link *l = &client->links[ps];
    size_t part = client->opts.message_bytes / (size_t)client->opts.ps & ~63u;
    l->message_bytes = 0;
    if (bytes <= part) {
        l->message = client->opts.messages + (size_t)ps * part;
        return true;
    }
    if (bytes > l->own_room) {
        pl_mem_free(l->own);
        l->own_room = 0;
        if (PL_NEW(l->own, bytes) != PL_OK) {
            pl_client_fail(client, "%s", pl_error_message());
            return false;
        }
        l->own_room = bytes;
    }
    l->message = l->own;
    return true;
}

static int64_t first_of(const pl_link *l)
{
    return l->in.first;
}

/* Append the keys of one server. */
static void put_list(const pl_ps_client *client, int32_t ps,
                     const pl_key_batch *batch)
{
    pl_link *l = &client->links[ps];
    l->message_bytes += (uint32_t)pl_key_list_write(
        pl_key_batch_of(batch, ps), batch->keys + batch->cut[ps],
        (uint64_t)first_of(l), l->message + l->message_bytes);
}

static size_t list_room(const pl_key_batch *batch, int32_t ps)
{
    return batch != NULL ? pl_key_list_room(pl_key_batch_of(batch, ps)) : 0;
}

void pl_client_make_pull(pl_ps_client *client, int32_t ps)
{
    pl_link *l = &client->links[ps];
    const pl_key_batch *want = client->want;
    l->message_bytes = 0;
    if (want == NULL || !message_room(client, ps, list_room(want, ps)))
        return;
    put_list(client, ps, want);
    l->request.pull.key_count = (uint32_t)pl_key_batch_of(want, ps);
    l->request.pull.list = want->number;
}

void pl_client_send_push(pl_ps_client *client, int32_t ps, bool list)
{
    pl_link *l = &client->links[ps];
    const pl_key_batch *of = client->of, *want = client->want;
    size_t count = (size_t)pl_key_batch_of(of, ps);
    size_t floats = count * sizeof(float);
    if (!message_room(client, ps,
                      floats + list_room(want, ps) +
                          (list ? list_room(of, ps) : 0)))
        return;
    if (count > 0)
        memcpy(l->message, client->grad + of->cut[ps], floats);
    l->message_bytes = (uint32_t)floats;
    pl_ps_request request = l->request;
    request.push.has_data = true;
    request.push.with_list = list;
    request.push.count = (uint32_t)count;
    request.push.of = of->number;
    if (want != NULL) {
        put_list(client, ps, want);
        request.push.key_count = (uint32_t)pl_key_batch_of(want, ps);
        request.push.want = want->number;
    }
    if (list)
        put_list(client, ps, of);
    pl_client_send(
        client, ps,
        pl_ps_request_encode(&request, l->sequence, l->message_bytes),
        l->message, l->message != l->own);
    l->asked_ns = client->now_ns;
}

void pl_client_close_keys(pl_ps_client *client)
{
    for (int32_t j = 0; client->links != NULL && j < client->opts.ps; j++)
        pl_mem_free(client->links[j].own);
}

bool pl_client_take_values(pl_ps_client *client, int32_t ps, uint32_t came,
                           const void *values)
{
    const pl_link *l = &client->links[ps];
    int64_t count = 0;
    float *to = client->range;
    if (l->request.kind == PL_REQUEST_PULL &&
        (l->request.pull.flags & PL_PULL_RANGE) != 0) {
        count = l->request.pull.count;
    } else if (client->want != NULL) {
        count = pl_key_batch_of(client->want, ps);
        to = client->want->values + client->want->cut[ps];
    }
    if (came != count)
        return false;
    if (count > 0)
        memcpy(to, values, (size_t)count * sizeof *to);
    return true;
}
