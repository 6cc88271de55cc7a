/* share.h - how one process finds the memory of another on its host.
 *
 * A process sends its pid and its descriptors; another of the same user opens
 * them through /proc.  So no name in the file system can outlive a killed
 * process.  A descriptor that does not match the offer (pids are reused) is
 * refused.
 *
 * Threads: any. */
#ifndef PL_NET_SHM_SHARE_H
#define PL_NET_SHM_SHARE_H

#include "net/shm/area.h"

#include <stdint.h>

#define PL_SHARE_BYTES 256 /* of the text */
#define PL_NONCE_BYTES 16

typedef struct pl_share_file {
    int32_t fd; /* in the process that shares it; -1: nothing */
    uint64_t inode, bytes;
} pl_share_file;

typedef struct pl_share_offer {
    char host[64]; /* boot and process namespace: must be equal to share */
    int32_t pid;
    pl_share_file channel, area;
    pl_share_file bell; /* a pipe; bytes is 0 */
    uint8_t nonce[PL_NONCE_BYTES];
} pl_share_offer;

/* Describe this process.  `area` may be NULL; the channel is left out. */
pl_status pl_share_init(pl_share_offer *out, const pl_area *area,
                        int bell_fd) PL_MUST_CHECK;
/* Describe an open descriptor of ours. */
pl_status pl_share_file_of(pl_share_file *out, int fd) PL_MUST_CHECK;

void pl_share_write(const pl_share_offer *share, char out[PL_SHARE_BYTES]);
pl_status pl_share_read(pl_share_offer *out, const char *text) PL_MUST_CHECK;

/* Map a memory file of another process.  It must be the file of the offer,
 * belong to this user, and be sealed against shrinking: its pages cannot
 * disappear. */
pl_status pl_share_map(void **out, const pl_share_offer *from,
                       const pl_share_file *file, bool writable) PL_MUST_CHECK;

/* Open its doorbell for writing: never blocks, never raises SIGPIPE. */
pl_status pl_share_open_bell(int *out,
                             const pl_share_offer *from) PL_MUST_CHECK;

/* A descriptor that becomes readable when the process ends. */
pl_status pl_share_watch(int *out, const pl_share_offer *from) PL_MUST_CHECK;

#endif
