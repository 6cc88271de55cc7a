/* links.c - copies the counts of a worker's connections into its report, for
 * any strategy; by server, if there are servers. */
#include "app/train/links.h"

#include <stdio.h>

pl_ps_sync_view pl_links_look(const pl_ps_sync *ps,
                              const pl_allreduce_sync *together,
                              pl_collective *collective)
{
    if (ps != NULL)
        return pl_ps_sync_look(ps);
    pl_allreduce_sync_view all = pl_allreduce_sync_look(together);
    pl_collective_view moved = collective->ops->look(collective);
    return (pl_ps_sync_view) {
        .step = all.step,
        .made = all.step,
        .update_seconds = all.update_seconds,
        .reports = all.reports,
        .sent_bytes = moved.sent_bytes,
        .received_bytes = moved.received_bytes,
        .sent_messages = moved.sent_messages,
        .received_messages = moved.received_messages,
        .busy_ns = moved.busy_ns,
        .shared = moved.shared,
        .skew = moved.skew,
        .broken = all.broken,
    };
}

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

void pl_links_count(pl_task_usage *usage, const pl_ps_sync_view *view)
{
    usage->bytes_sent = view->sent_bytes;
    usage->bytes_received = view->received_bytes;
    usage->messages_sent = view->sent_messages;
    usage->messages_received = view->received_messages;
}

void pl_links_report(pl_worker_report *row, const pl_ps_sync_view *view,
                     const pl_ps_sync *ps, int32_t count,
                     pl_peer_usage peers[PL_REPORT_PEERS_MAX])
{
    pl_links_count(&row->usage, view);
    if (view->busy_ns >= 0)
        row->link_busy_seconds = (double)view->busy_ns * 1e-9;
    if (ps == NULL)
        return;
    row->peers = peers;
    for (int32_t j = 0; j < count && j < PL_REPORT_PEERS_MAX; j++)
        peers[row->peer_count++] = usage_of(ps, j);
}
