/* packet.h - control messages over the socket of a task on this machine.
 *
 * SOCK_SEQPACKET preserves message boundaries, and a message that does not fit
 * is not sent at all.  No function blocks.
 *
 * Threads: one per descriptor and direction. */
#ifndef PL_JOB_SUPERVISE_PACKET_H
#define PL_JOB_SUPERVISE_PACKET_H

#include "job/supervise/messages.h"

#define PL_PACKET_MOST 65536 /* bytes of a message */

/* Two ends; both are close-on-exec until changed. */
pl_status pl_packet_pair(int *ours, int *theirs) PL_MUST_CHECK;

/* PL_AGAIN: the other end does not read; PL_CLOSED: it is gone. */
pl_status pl_packet_send(int fd,
                         const pl_control_message *message) PL_MUST_CHECK;
/* The next message, which the caller closes.  PL_AGAIN: none now, PL_CLOSED:
 * the other end is closed, PL_PEER: malformed. */
pl_status pl_packet_receive(int fd, pl_control_message *out) PL_MUST_CHECK;

#endif
