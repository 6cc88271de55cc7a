/* peers.h - the clients of a server by number.
 *
 * A client is identified by 16 random bytes that it chose; the server uses
 * small numbers.  A dropped client keeps its number, so that its messages are
 * recognised and ignored, until the number is needed for a new one.  When all
 * are taken, the client silent for longest is dropped: first among those not
 * marked to be kept, last among those with an upgrade.  So neither a flood nor
 * the connections of dead tasks keep new clients out.
 *
 * Threads: one. */
#ifndef PL_NET_PEERS_H
#define PL_NET_PEERS_H

#include "net/keys.h"
#include "paceline/base.h"

#include <stdbool.h>
#include <stdint.h>

#define PL_IDENTITY_BYTES 16
#define PL_PEER_TEXT      80 /* an address with its port */

typedef struct pl_peer_entry {
    uint8_t identity[PL_IDENTITY_BYTES];
    bool dropped;
    uint64_t dropped_at; /* count of drops; the oldest number goes first */
    bool kept;           /* dropped last */
    bool met;            /* its first message was delivered */
    uint64_t heard_at;   /* count of messages */
    char address[PL_PEER_TEXT];
    pl_principal who;
    int32_t offences;         /* malformed messages */
    struct pl_route *upgrade; /* NULL: the connection only */
    void *link;               /* the upgrade's state for this peer */
} pl_peer_entry;

typedef struct pl_peers {
    pl_peer_entry *entries; /* the first `count` are in use */
    int32_t *table;         /* hash to number, -1: none */
    uint32_t table_mask;
    int32_t count, most;
    uint64_t seed; /* of the hash, so that collisions cannot be chosen */
    uint64_t drops, messages;
} pl_peers;

pl_status pl_peers_init(pl_peers *peers, int32_t most,
                        uint64_t seed) PL_MUST_CHECK;
void pl_peers_close(pl_peers *peers);

/* The number of an identity, or -1. */
int32_t pl_peers_find(const pl_peers *peers,
                      const uint8_t identity[PL_IDENTITY_BYTES]);
/* A number for a new identity, or -1 when all are taken. */
int32_t pl_peers_add(pl_peers *peers,
                     const uint8_t identity[PL_IDENTITY_BYTES]);
void pl_peers_drop(pl_peers *peers, int32_t number);
/* The peer to drop when all numbers are taken; -1: none. */
int32_t pl_peers_idle(const pl_peers *peers);

#endif
