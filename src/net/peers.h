/* peers.h - the clients of a server by number.
 *
 * A client is known by the 16 random bytes it chose; the server speaks of
 * small numbers.  A dropped client keeps its number, so that its messages are
 * recognised and ignored, until the number is needed for a new one.  When all
 * are taken, who was heard longest ago is dropped, first of those that nobody
 * said are to be kept, last of those with an upgrade: neither a flood nor
 * what dead tasks leave behind keeps new ones out.
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
    bool kept;           /* goes last */
    bool met;            /* its first message was handed out */
    uint64_t heard_at;   /* count of messages */
    char address[PL_PEER_TEXT];
    pl_principal who;
    int32_t offences;         /* malformed messages */
    struct pl_route *upgrade; /* NULL: the connection alone */
    void *link;               /* what the upgrade keeps of this peer */
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
