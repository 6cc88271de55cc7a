/* channel.h - two rings in memory that two processes of a host share. */
#ifndef PL_NET_CHANNEL_H
#define PL_NET_CHANNEL_H

typedef struct pl_channel pl_channel;
void pl_channel_free(pl_channel *channel); /* NULL is fine */

#endif
