/* The owner of a socket: netlink's sock_diag for one socket or, where the
 * kernel lacks it, the list in /proc. */
#include "net/tcp/owner.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Both ends of a connection, the peer's first. */
typedef struct ends {
    int family;
    uint16_t ports[2]; /* network order */
    uint8_t addresses[2][16];
} ends;

static void put_end(ends *e, int which, const struct sockaddr_storage *from)
{
    if (from->ss_family == AF_INET6) {
        const struct sockaddr_in6 *in = (const struct sockaddr_in6 *)from;
        e->ports[which] = in->sin6_port;
        memcpy(e->addresses[which], &in->sin6_addr, 16);
    } else {
        const struct sockaddr_in *in = (const struct sockaddr_in *)from;
        e->ports[which] = in->sin_port;
        memcpy(e->addresses[which], &in->sin_addr, 4);
    }
}

static pl_status find_ends(ends *out, int fd)
{
    struct sockaddr_storage peer, own;
    socklen_t peer_size = sizeof peer, own_size = sizeof own;
    memset(out, 0, sizeof *out);
    memset(&peer, 0, sizeof peer);
    memset(&own, 0, sizeof own);
    if (getpeername(fd, (struct sockaddr *)&peer, &peer_size) != 0 ||
        getsockname(fd, (struct sockaddr *)&own, &own_size) != 0)
        return PL_FAIL(PL_NOTFOUND, "the peer has closed the connection");
    out->family = peer.ss_family;
    put_end(out, 0, &peer);
    put_end(out, 1, &own);
    return PL_OK;
}

typedef struct question {
    struct nlmsghdr head;
    struct inet_diag_req_v2 body;
} question;

static bool ask(int netlink, const ends *e)
{
    question ask = {
        .head = { .nlmsg_len = sizeof ask,
                  .nlmsg_type = SOCK_DIAG_BY_FAMILY,
                  .nlmsg_flags = NLM_F_REQUEST },
        .body = { .sdiag_family = (uint8_t)e->family,
                  .sdiag_protocol = IPPROTO_TCP,
                  .idiag_states = UINT32_MAX,
                  .id = { .idiag_sport = e->ports[0],
                          .idiag_dport = e->ports[1],
                          .idiag_cookie = { INET_DIAG_NOCOOKIE,
                                            INET_DIAG_NOCOOKIE } } },
    };
    memcpy(ask.body.id.idiag_src, e->addresses[0], 16);
    memcpy(ask.body.id.idiag_dst, e->addresses[1], 16);
    return send(netlink, &ask, sizeof ask, 0) == (ssize_t)sizeof ask;
}

/* The kernel answers before send() returns. */
static pl_status hear(int netlink, const ends *e, uid_t *out)
{
    union {
        struct nlmsghdr head;
        uint8_t bytes[4096];
    } answer;
    ssize_t got = recv(netlink, &answer, sizeof answer, MSG_DONTWAIT);
    if (got < (ssize_t)sizeof answer.head ||
        answer.head.nlmsg_len > (size_t)got)
        return PL_FAIL(PL_UNSUPPORTED, "sock_diag does not answer");
    if (answer.head.nlmsg_type == NLMSG_ERROR &&
        answer.head.nlmsg_len >= NLMSG_LENGTH(sizeof(struct nlmsgerr))) {
        const struct nlmsgerr *error = NLMSG_DATA(&answer.head);
        if (error->error == -ENOENT)
            return PL_FAIL(PL_NOTFOUND, "the peer has closed the connection");
        return PL_FAIL(PL_UNSUPPORTED, "sock_diag: %s",
                       strerror(-error->error));
    }
    const struct inet_diag_msg *found = NLMSG_DATA(&answer.head);
    if (answer.head.nlmsg_type != SOCK_DIAG_BY_FAMILY ||
        answer.head.nlmsg_len < NLMSG_LENGTH(sizeof *found) ||
        found->id.idiag_sport != e->ports[0] ||
        found->id.idiag_dport != e->ports[1])
        return PL_FAIL(PL_UNSUPPORTED, "sock_diag answers something else");
    /* A socket that its process has closed has no owner, which some
     * kernels call user 0. */
    if (found->idiag_inode == 0)
        return PL_FAIL(PL_NOTFOUND, "the peer has closed the connection");
    *out = found->idiag_uid;
    return PL_OK;
}

pl_status pl_owner_of_peer(int fd, uid_t *out)
{
    ends e;
    PL_TRY(find_ends(&e, fd));
    pl_status status = PL_UNSUPPORTED;
    int netlink =
        socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
    if (netlink >= 0) {
        if (ask(netlink, &e))
            status = hear(netlink, &e, out);
        close(netlink);
    }
    return status == PL_UNSUPPORTED ? pl_owner_from_proc(fd, "/proc/net", out)
                                    : status;
}

/* As the kernel writes an address: words of the machine's order, in
 * hexadecimal digits, then the port. */
static void proc_text(char out[64], const ends *e, int which)
{
    int used = 0;
    for (size_t word = 0; word < (e->family == AF_INET6 ? 4u : 1u); word++) {
        uint32_t value;
        memcpy(&value, e->addresses[which] + 4 * word, sizeof value);
        used += snprintf(out + used, 64 - (size_t)used, "%08X", value);
    }
    snprintf(out + used, 64 - (size_t)used, ":%04X", ntohs(e->ports[which]));
}

pl_status pl_owner_from_proc(int fd, const char *folder, uid_t *out)
{
    ends e;
    char path[256], peer[64], own[64], line[512];
    PL_TRY(find_ends(&e, fd));
    proc_text(peer, &e, 0);
    proc_text(own, &e, 1);
    snprintf(path, sizeof path, "%s/%s", folder,
             e.family == AF_INET6 ? "tcp6" : "tcp");
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return PL_FAIL(PL_UNSUPPORTED, "open %s: %s", path, strerror(errno));
    pl_status status = PL_NOTFOUND;
    while (status == PL_NOTFOUND && fgets(line, sizeof line, file) != NULL) {
        char local[64], remote[64];
        unsigned uid;
        unsigned long inode;
        if (sscanf(line, " %*d: %63s %63s %*x %*x:%*x %*x:%*x %*x %u %*u %lu",
                   local, remote, &uid, &inode) == 4 &&
            inode != 0 && strcmp(local, peer) == 0 &&
            strcmp(remote, own) == 0) {
            *out = uid;
            status = PL_OK;
        }
    }
    fclose(file);
    return status == PL_OK
               ? PL_OK
               : PL_FAIL(PL_NOTFOUND, "the peer has closed the connection");
}
