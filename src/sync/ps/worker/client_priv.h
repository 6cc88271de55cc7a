/* client_priv.h - what the files of the client share.
 *
 * client.c         requests and their answers
 * client_join.c    joining
 * client_keys.c    the messages of sparse parameters
 * client_pieces.c  the pieces of dense ones
 * client_view.c    queries of the caller */
#ifndef PL_SYNC_PS_WORKER_CLIENT_PRIV_H
#define PL_SYNC_PS_WORKER_CLIENT_PRIV_H

#include "sync/ps/messages/messages.h"
#include "sync/ps/messages/pieces.h"
#include "sync/ps/worker/client.h"
#include "sync/ps/worker/pace.h"

typedef enum pl_link_stage {
    PL_LINK_IDLE,
    PL_LINK_ASKING,    /* the request has not been answered */
    PL_LINK_ANSWERING, /* parameters are arriving */
    PL_LINK_DONE,
} pl_link_stage;

/* The state of the link to one server. */
typedef struct pl_link {
    bool joined;
    char offer[PL_OFFER_BYTES]; /* of shared memory, until it has joined */
    pl_link_stage stage;
    uint64_t sequence;
    uint64_t before; /* the last sequence before joining */
    pl_ps_request request;
    int64_t asked_ns; /* when the request was last sent, probed or answered */
    pl_stream out;
    pl_encoded *wire; /* pieces of the current push, as first sent */
    pl_pieces in;
    int64_t step; /* of the received parameters */
    unsigned answer;
    /* Sparse parameters: the message of the current request. */
    uint8_t *message;
    uint32_t message_bytes;
    uint8_t *own; /* memory for a message that does not fit into shared
                     memory */
    size_t own_room;
} pl_link;

struct pl_ps_client {
    pl_ps_client_opts opts;
    const pl_ps_pace *pace;
    pl_link *links;
    int64_t now_ns;
    bool joining;
    uint64_t sequence; /* of the last request, on any link */
    uint64_t joins; /* attempts to join; a WELCOME has the number of its JOIN */
    bool rolled;
    uint32_t generation; /* 0: never joined */
    int64_t *counts;     /* [workers] */
    pl_deal deal;        /* as last received... */
    pl_workers present;  /* ... with these workers */
    const float *grad;
    pl_coder coder;
    int64_t coded;    /* floats of the gradient that were encoded */
    const char *text; /* of a stop or bye, a plan, or first parameters */
    uint32_t saves;   /* saves begun by this process */
    char saved_why[512];
    bool rest; /* pull: the other servers are asked after server 0 */
    /* Sparse parameters: the keys of the current request. */
    const pl_key_batch *of; /* the gradient's keys */
    pl_key_batch *want;     /* or NULL */
    float *range;           /* destination of a range, or NULL */
    int64_t lists;          /* lists requested */
    pl_ps_client_view view;
    char *report;
    char *run; /* of view.run */
    bool failed;
    char why[512];
};

void pl_client_fail(pl_ps_client *client, const char *format, ...)
    PL_PRINTF(2, 3);

/* client_join.c */
void pl_client_ask_to_join(pl_ps_client *client, int32_t ps);
void pl_client_on_welcome(pl_ps_client *client, int32_t ps,
                          const pl_message *message);

void pl_client_send(pl_ps_client *client, int32_t ps, pl_frame frame,
                    const void *payload, bool lasting);
/* client_pieces.c: send the pieces that are ready, as far as the window
 * allows. */
void pl_client_pump(pl_ps_client *client, int32_t ps);

/* client_keys.c */
/* Make the message of a pull: the keys of server `ps`. */
void pl_client_make_pull(pl_ps_client *client, int32_t ps);
/* Make and send the message of a push; `list`: with the keys of the
 * gradient. */
void pl_client_send_push(pl_ps_client *client, int32_t ps, bool list);
void pl_client_close_keys(pl_ps_client *client);
/* Store received values; false: not what was requested. */
bool pl_client_take_values(pl_ps_client *client, int32_t ps, uint32_t count,
                           const void *values);

#endif
