/* links.c - copies the counts of a worker's connections into its report, by
 * server where there are some. */
#include "app/train/links.h"

#include <stdio.h>

static pl_peer_usage usage_of(const pl_ps_sync *ps, int32_t server)
{
    pl_endpoint_counts counts = pl_ps_sync_link(ps, server);
    pl_peer_usage usage = {
        .bytes_sent = counts.sent_bytes,
        .bytes_received = counts.received_bytes,
        .messages_sent = counts.sent_messages,
        .messages_received = counts.received_messages,
    };
    snprintf(usage.peer, sizeof usage.peer, "ps %d", server);
    return usage;
}

void pl_links_report(pl_worker_report *row, const pl_ps_sync_view *view,
                     const pl_ps_sync *ps, int32_t count,
                     pl_peer_usage peers[PL_REPORT_PEERS_MAX])
{
    row->usage.bytes_sent = view->sent_bytes;
    row->usage.bytes_received = view->received_bytes;
    row->usage.messages_sent = view->sent_messages;
    row->usage.messages_received = view->received_messages;
    if (ps == NULL)
        return;
    row->peers = peers;
    for (int32_t j = 0; j < count && j < PL_REPORT_PEERS_MAX; j++)
        peers[row->peer_count++] = usage_of(ps, j);
}
