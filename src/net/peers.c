/* Numbers for the clients of a server; decides which client loses its number
 * when there are too many. */
#include "net/peers.h"

#include "base/assert.h"
#include "base/mem.h"
#include "base/rng.h"

#include <string.h>

pl_status pl_peers_init(pl_peers *peers, int32_t most, uint64_t seed)
{
    *peers = (pl_peers) { .most = most, .seed = seed };
    uint32_t size = 4;
    while (size < 2 * (uint32_t)most)
        size *= 2;
    peers->table_mask = size - 1;
    pl_status status;
    PL_TRY_OUT(status, PL_NEW(peers->entries, (size_t)most));
    PL_TRY_OUT(status, PL_NEW(peers->table, size));
    memset(peers->table, 0xff, size * sizeof *peers->table);
    return PL_OK;
out:
    pl_peers_close(peers);
    return status;
}

void pl_peers_close(pl_peers *peers)
{
    pl_mem_free(peers->entries);
    pl_mem_free(peers->table);
    *peers = (pl_peers) { 0 };
}

static uint32_t hash(const pl_peers *peers, const uint8_t *identity)
{
    uint64_t words[2];
    memcpy(words, identity, sizeof words);
    uint64_t key = pl_rng_key(pl_rng_key(peers->seed, words[0]), words[1]);
    return (uint32_t)(key >> 32);
}

/* The table's place of an identity, or the free place where it belongs.  The
 * table is at most half full. */
static uint32_t place_of(const pl_peers *peers, const uint8_t *identity)
{
    uint32_t at = hash(peers, identity) & peers->table_mask;
    while (peers->table[at] >= 0 &&
           memcmp(peers->entries[peers->table[at]].identity, identity,
                  PL_IDENTITY_BYTES) != 0)
        at = (at + 1) & peers->table_mask;
    return at;
}

int32_t pl_peers_find(const pl_peers *peers,
                      const uint8_t identity[PL_IDENTITY_BYTES])
{
    return peers->table[place_of(peers, identity)];
}

/* The number that was dropped longest ago, or -1. */
static int32_t oldest_dropped(const pl_peers *peers)
{
    int32_t oldest = -1;
    for (int32_t i = 0; i < peers->count; i++)
        if (peers->entries[i].dropped &&
            (oldest < 0 ||
             peers->entries[i].dropped_at < peers->entries[oldest].dropped_at))
            oldest = i;
    return oldest;
}

static void rebuild_table(pl_peers *peers)
{
    memset(peers->table, 0xff,
           ((size_t)peers->table_mask + 1) * sizeof *peers->table);
    for (int32_t i = 0; i < peers->count; i++)
        peers->table[place_of(peers, peers->entries[i].identity)] = i;
}

int32_t pl_peers_add(pl_peers *peers, const uint8_t identity[PL_IDENTITY_BYTES])
{
    bool again = peers->count == peers->most;
    int32_t number = again ? oldest_dropped(peers) : peers->count;
    if (number < 0)
        return -1;
    pl_peer_entry *entry = &peers->entries[number];
    *entry = (pl_peer_entry) { .dropped = false };
    memcpy(entry->identity, identity, PL_IDENTITY_BYTES);
    if (again) {
        rebuild_table(peers);
    } else {
        peers->count++;
        peers->table[place_of(peers, identity)] = number;
    }
    return number;
}

void pl_peers_drop(pl_peers *peers, int32_t number)
{
    PL_ASSERT(number >= 0 && number < peers->count);
    pl_peer_entry *entry = &peers->entries[number];
    if (entry->dropped)
        return;
    entry->dropped = true;
    entry->dropped_at = ++peers->drops;
}

/* Which peer is dropped first when there are too many. */
static int rank(const pl_peer_entry *entry)
{
    return (entry->upgrade != NULL ? 2 : 0) + (entry->kept ? 1 : 0);
}

int32_t pl_peers_idle(const pl_peers *peers)
{
    const pl_peer_entry *best = NULL;
    for (int32_t i = 0; i < peers->count; i++) {
        const pl_peer_entry *entry = &peers->entries[i];
        if (best == NULL || rank(entry) < rank(best) ||
            (rank(entry) == rank(best) && entry->heard_at < best->heard_at))
            best = entry;
    }
    return best != NULL ? (int32_t)(best - peers->entries) : -1;
}
