/* model_pairs.c - the bytes sent between tasks, as a member of the model's
 * document: workers count the bytes to and from each server. */
#include "base/text/quote.h"
#include "observe/model/model_priv.h"

#include <stdio.h>

static void put_transfer(pl_buffer *out, bool *any, const char *from,
                         const char *to, int64_t bytes, int64_t messages)
{
    if (bytes < 0)
        return;
    pl_buffer_text(out, *any ? ",[" : "[");
    pl_quote_json(out, from);
    pl_buffer_text(out, ",");
    pl_quote_json(out, to);
    pl_buffer_format(out, ",%lld,%lld]", (long long)bytes,
                     (long long)(messages > 0 ? messages : 0));
    *any = true;
}

static void put_worker(pl_buffer *out, bool *any, const pl_worker_report *row)
{
    char name[32];
    snprintf(name, sizeof name, "worker %d", row->index);
    for (size_t p = 0; p < row->peer_count; p++) {
        const pl_peer_usage *peer = &row->peers[p];
        put_transfer(out, any, name, peer->peer, peer->bytes_sent,
                     peer->messages_sent);
        put_transfer(out, any, peer->peer, name, peer->bytes_received,
                     peer->messages_received);
    }
}

bool pl_model_has_pairs(const pl_record *record)
{
    for (size_t i = 0; record->ended && i < record->summary.worker_count; i++)
        if (record->summary.per_worker[i].peer_count > 0)
            return true;
    return false;
}

void pl_model_pairs_json(const pl_runs_model *model, pl_buffer *out)
{
    bool any_run = false;
    pl_buffer_text(out, ",\n\"pairs\":[");
    for (size_t i = 0; i < model->records->count; i++) {
        const pl_record *record = &model->records->list[i];
        bool any = false;
        if (!pl_model_has_pairs(record))
            continue;
        pl_buffer_format(out, "%s{\"run\":%zu,\"transfers\":[",
                         any_run ? ",\n" : "", i);
        for (size_t w = 0; w < record->summary.worker_count; w++)
            put_worker(out, &any, &record->summary.per_worker[w]);
        pl_buffer_text(out, "]}");
        any_run = true;
    }
    pl_buffer_text(out, "]");
}
