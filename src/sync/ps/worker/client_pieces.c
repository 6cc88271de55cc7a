/* The pieces of dense parameters that a task sends: gradients through the job's
 * codec, first parameters unencoded.  Decides what the bytes of a piece are
 * when it is sent, and keeps them the same when it is resent. */
#include "sync/ps/worker/client_priv.h"

#include "base/assert.h"

/* A piece of the gradient is encoded once: a codec may have state, and the same
 * bytes are resent. */
static pl_encoded encode_piece(pl_ps_client *client, pl_link *l, int32_t index,
                               const pl_piece_range *piece)
{
    pl_encoded *wire = &l->wire[index];
    float *room = client->opts.encoded;
    PL_ASSERT(room != NULL || client->coder.codec->in_place);
    if (wire->bytes != NULL)
        return *wire;
    client->coded += piece->count;
    *wire = pl_coder_encode(&client->coder, piece->first, piece->count,
                            client->grad + piece->first,
                            room != NULL ? room + piece->first : NULL);
    return *wire;
}

/* The first parameters are not encoded: they must be exact. */
static pl_encoded param_piece(const pl_ps_client *client,
                              const pl_piece_range *piece)
{
    return (pl_encoded) { client->opts.params + piece->first,
                          piece->count * sizeof(float) };
}

void pl_client_pump(pl_ps_client *client, int32_t ps)
{
    pl_link *l = &client->links[ps];
    for (int32_t i = pl_stream_next(&l->out); i >= 0;
         i = pl_stream_next(&l->out)) {
        pl_piece_range piece = pl_pieces_range(&l->out.acked, i);
        pl_ps_request request = l->request;
        pl_encoded data;
        if (request.kind == PL_REQUEST_PUSH) {
            data = encode_piece(client, l, i, &piece);
            request.push.first = piece.first;
            request.push.count = piece.count;
        } else {
            data = param_piece(client, &piece);
            request.init.first = piece.first;
            request.init.count = piece.count;
        }
        pl_client_send(
            client, ps,
            pl_ps_request_encode(&request, l->sequence, (uint32_t)data.size),
            data.bytes, true);
        l->asked_ns = client->now_ns;
    }
}
