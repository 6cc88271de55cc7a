/* Admission over real sockets, with keys and without, by both mechanisms. */
#include "net/tcp/outbox.h"
#include "support/wire.h"

#include "base/log.h"

#define LOG_BYTES 8192

static const pl_principal worker0 = { PL_PRINCIPAL_WORKER, 0 };
static const pl_principal worker1 = { PL_PRINCIPAL_WORKER, 1 };
static const pl_principal ps0 = { PL_PRINCIPAL_PS, 0 };

/* A job of two workers and a server; all that was logged. */
typedef struct world {
    pl_job_keys keys, other; /* `other` is another job's */
    bool encrypt;
    char log[LOG_BYTES];
} world;

static void keep_line(void *context, pl_log_level level, const char *line)
{
    world *w = context;
    (void)level;
    size_t used = strlen(w->log);
    snprintf(w->log + used, sizeof w->log - used, "%s\n", line);
}

static int world_make(void **state)
{
    world *w = calloc(1, sizeof *w);
    w->keys = w->other = (pl_job_keys) { .workers = 2, .ps = 1 };
    w->encrypt = *state != NULL;
    memset(w->keys.secret.bytes, 7, PL_SECRET_BYTES);
    memset(w->other.secret.bytes, 8, PL_SECRET_BYTES);
    *state = w;
    pl_log_set(keep_line, w, PL_LOG_INFO);
    return 0;
}

static int world_drop(void **state)
{
    pl_log_set(NULL, NULL, PL_LOG_INFO);
    free(*state);
    return 0;
}

static pl_endpoint *listen_with(const world *w, const pl_job_keys *keys)
{
    pl_endpoint *server = NULL;
    assert_ok(pl_endpoint_listen(&server, &(pl_endpoint_opts) {
                                              .address = "127.0.0.1:0",
                                              .name = "ps 0",
                                              .keys = keys,
                                              .self = ps0,
                                              .encrypt = w->encrypt,
                                          }));
    return server;
}

static pl_endpoint *connect_as(const world *w, const pl_endpoint *server,
                               const pl_job_keys *keys, pl_principal who)
{
    pl_endpoint *client = NULL;
    assert_ok(
        pl_endpoint_connect(&client, &(pl_endpoint_opts) {
                                         .address = pl_endpoint_address(server),
                                         .name = "a worker",
                                         .keys = keys,
                                         .self = who,
                                         .encrypt = w->encrypt,
                                     }));
    return client;
}

/* Serve both until `done`; neither receives a message. */
static void turn_until(pl_endpoint *server, pl_endpoint *client,
                       bool (*done)(const void *), const void *context)
{
    pl_deadline deadline = net_soon();
    pl_message none;
    while (!done(context)) {
        assert_false(pl_deadline_passed(deadline));
        pl_deadline brief = pl_deadline_in_ms(pl_clock_real(), 1);
        assert_int_equal(PL_TIMEOUT, pl_endpoint_receive(server, &none, brief));
        if (client != NULL)
            assert_int_not_equal(PL_OK, pl_endpoint_poll(client, &none));
    }
}

typedef struct said {
    const world *w;
    const char *words;
} said;

static bool was_said(const void *context)
{
    const said *s = context;
    return strstr(s->w->log, s->words) != NULL;
}

/* The client received the refusal, or the connection ended before it did. */
static bool was_refused(const void *context)
{
    pl_message none;
    pl_endpoint *client = *(pl_endpoint *const *)context;
    return pl_endpoint_count(client).refused_messages > 0 ||
           pl_endpoint_receive(client, &none,
                               pl_deadline_in_ms(pl_clock_real(), 1)) ==
               PL_CLOSED;
}

/* A task of the job is admitted, identified, and answered. */
static void check_task(const world *w, pl_endpoint *server,
                       const pl_job_keys *keys, pl_principal who)
{
    pl_endpoint *client = connect_as(w, server, keys, who);
    net_send(client, 0, PL_FRAME_JOIN, 7, "hello", 5, false);
    pl_message got = net_expect(server, PL_FRAME_JOIN, 7, "hello", 5);
    pl_principal none = { PL_PRINCIPAL_NONE, 0 };
    assert_true(pl_principal_equal(keys != NULL ? who : none, got.who));
    net_send(server, got.from, PL_FRAME_WELCOME, 7, "there", 5, false);
    got = net_expect(client, PL_FRAME_WELCOME, 7, "there", 5);
    assert_true(pl_principal_equal(keys != NULL ? ps0 : none, got.who));
    pl_endpoint_free(client, 0);
}

static void admission_admits_the_tasks_of_the_job(void **state)
{
    const world *w = *state;
    pl_endpoint *server = listen_with(w, &w->keys);
    check_task(w, server, &w->keys, worker0);
    check_task(w, server, &w->keys, worker1);
    check_task(w, server, &w->keys, ps0);
    assert_string_equal("", w->log);
    pl_endpoint_free(server, 0);
}

static void admission_without_keys_identifies_no_task(void **state)
{
    const world *w = *state;
    pl_endpoint *server = listen_with(w, NULL);
    check_task(w, server, NULL, worker0);
    assert_string_equal("", w->log);
    pl_endpoint_free(server, 0);
}

/* Nothing of it arrives, both sides log it, and the service continues.  The
 * client logs `client_says` if it learns the reason. */
static void check_turned_away(world *w, const pl_job_keys *servers,
                              const pl_job_keys *clients, pl_principal who,
                              const char *server_says, const char *client_says)
{
    pl_message none;
    pl_endpoint *server = listen_with(w, servers);
    pl_endpoint *client = connect_as(w, server, clients, who);
    net_send(client, 0, PL_FRAME_JOIN, 1, NULL, 0, false);
    turn_until(server, client, was_said, &(said) { w, server_says });
    assert_non_null(strstr(w->log, "ps 0 (127.0.0.1:"));
    assert_int_equal(0, pl_endpoint_count(server).received_messages);
    turn_until(server, NULL, was_refused, &client);
    if (pl_endpoint_count(client).refused_messages > 0)
        assert_non_null(strstr(w->log, "a worker (127.0.0.1:"));
    else
        assert_fails(PL_CLOSED, client_says, pl_endpoint_poll(client, &none));
    check_task(w, server, servers, worker0);
    pl_endpoint_free(client, 0);
    pl_endpoint_free(server, 0);
}

static void admission_refuses_another_secret(void **state)
{
    world *w = *state;
    check_turned_away(w, &w->keys, &w->other, worker0, "another key file?",
                      "do both have the same key file?");
}

static void admission_refuses_clients_without_keys(void **state)
{
    world *w = *state;
    check_turned_away(w, &w->keys, NULL, worker0,
                      "was it started without --keys",
                      "start this task with --keys FILE");
}

static void admission_refuses_keys_where_none_are_used(void **state)
{
    world *w = *state;
    check_turned_away(w, NULL, &w->keys, worker0,
                      "it has keys, which this task was not given",
                      "was it started without --keys");
}

static void admission_refuses_tasks_that_the_job_lacks(void **state)
{
    world *w = *state;
    static const pl_principal strangers[] = {
        { PL_PRINCIPAL_WORKER, 2 },
        { PL_PRINCIPAL_PS, 1 },
        { PL_PRINCIPAL_EVALUATOR, 0 },
    };
    for (size_t i = 0; i < sizeof strangers / sizeof *strangers; i++) {
        w->log[0] = '\0';
        check_turned_away(w, &w->keys, &w->keys, strangers[i],
                          "did not prove to be a task of this job",
                          "do both have the same key file?");
    }
}

/* --- programs that are not ours ---------------------------------------- */

static pl_handshake_config as_task(const world *w, const pl_endpoint *server,
                                   const pl_job_keys *keys, pl_principal who)
{
    pl_handshake_config config = {
        .mechanism = w->encrypt ? PL_MECHANISM_ENCRYPTED : PL_MECHANISM_PROOF,
        .keys = keys,
        .self = who,
        .wanted = ps0,
        .identity = "sixteen bytes id",
    };
    const char *port = strrchr(pl_endpoint_address(server), ':') + 1;
    config.port = (uint16_t)atoi(port);
    return config;
}

/* Its key does not identify it as another task. */
static void admission_needs_the_key_of_the_task_itself(void **state)
{
    world *w = *state;
    pl_endpoint *server = listen_with(w, &w->keys);
    pl_handshake_config config = as_task(w, server, &w->keys, worker0);
    pl_handshake handshake;
    uint8_t hello[PL_HANDSHAKE_BYTES], answer[PL_HANDSHAKE_BYTES];
    uint8_t proof[PL_HANDSHAKE_BYTES];
    bool ready;
    int fd = wire_connect(pl_endpoint_address(server));
    assert_ok(pl_handshake_begin(&handshake, &config, hello));
    hello[12] = 1; /* claims worker 1, proves worker 0 */
    memcpy(handshake.said[0], hello, sizeof hello);
    wire_send(fd, hello, sizeof hello);
    assert_true(wire_read(server, fd, answer, sizeof answer));
    assert_int_equal(PL_HANDSHAKE_MORE,
                     pl_handshake_take(&handshake, &config, PL_VERDICT_WELCOME,
                                       answer, proof, &ready));
    wire_send(fd, proof, sizeof proof);
    turn_until(server, NULL, was_said,
               &(said) { w, "does it belong to another job" });
    assert_true(wire_read(server, fd, answer, sizeof answer));
    assert_int_equal(PL_HANDSHAKE_REFUSED,
                     pl_handshake_take(&handshake, &config, PL_VERDICT_WELCOME,
                                       answer, proof, &ready));
    assert_int_equal(0, pl_endpoint_count(server).received_messages);
    check_task(w, server, &w->keys, worker1);
    close(fd);
    pl_endpoint_free(server, 0);
}

/* A client that looks for ps 1 does not talk to ps 0. */
static void admission_needs_the_right_server(void **state)
{
    world *w = *state;
    pl_endpoint *server = listen_with(w, &w->keys);
    pl_handshake_config config = as_task(w, server, &w->keys, worker0);
    pl_handshake handshake;
    config.wanted.index = 1;
    int fd = wire_connect(pl_endpoint_address(server));
    assert_int_equal(PL_HANDSHAKE_REFUSED,
                     wire_shake(server, fd, &config, &handshake));
    assert_non_null(strstr(handshake.why, "same cluster file"));
    assert_non_null(strstr(w->log, "looks for another task"));
    close(fd);
    pl_endpoint_free(server, 0);
}

/* A relay from one loopback port to another is detected. */
static void admission_needs_the_right_port(void **state)
{
    world *w = *state;
    pl_endpoint *server = listen_with(w, &w->keys);
    pl_handshake_config config = as_task(w, server, &w->keys, worker0);
    pl_handshake handshake;
    config.port++;
    int fd = wire_connect(pl_endpoint_address(server));
    assert_int_equal(PL_HANDSHAKE_REFUSED,
                     wire_shake(server, fd, &config, &handshake));
    close(fd);
    pl_endpoint_free(server, 0);
}

typedef struct refused {
    const pl_endpoint *endpoint;
    int64_t count;
} refused;

static bool refused_some(const void *context)
{
    const refused *r = context;
    return pl_endpoint_count(r->endpoint).refused_messages >= r->count;
}

/* Encrypted or not, bytes that carry no frame. */
static void send_as(int fd, pl_outbox *outbox, pl_frame_kind kind)
{
    pl_outgoing message;
    size_t sent;
    pl_frame frame = { .kind = PL_FRAME_JOIN, .sequence = 9 };
    pl_outgoing_init(&message, &frame, NULL);
    message.head[PL_PREFIX_BYTES + 6] = (uint8_t)kind;
    assert_int_equal(PL_WRITE_DRAINED,
                     pl_outbox_write_now(outbox, fd, &message, &sent));
}

static void admission_drops_a_task_that_sends_nonsense(void **state)
{
    world *w = *state;
    pl_endpoint *server = listen_with(w, &w->keys);
    pl_handshake_config config = as_task(w, server, &w->keys, worker1);
    pl_handshake handshake;
    pl_outbox outbox = { .count = 0 };
    pl_cipher *cipher = NULL;
    int fd = wire_connect(pl_endpoint_address(server));
    assert_int_equal(PL_HANDSHAKE_DONE,
                     wire_shake(server, fd, &config, &handshake));
    if (w->encrypt)
        assert_ok(pl_cipher_new(&cipher, handshake.session[0], true));
    pl_outbox_use(&outbox, cipher);
    send_as(fd, &outbox, PL_FRAME_JOIN);
    pl_message got = net_expect(server, PL_FRAME_JOIN, 9, NULL, 0);
    assert_true(pl_principal_equal(worker1, got.who));
    for (int i = 0; i < 8; i++)
        send_as(fd, &outbox, 200);
    turn_until(server, NULL, refused_some, &(refused) { server, 8 });
    assert_non_null(strstr(w->log, "worker 1 at 127.0.0.1:"));
    assert_non_null(strstr(w->log, "is dropped after 8 malformed messages"));
    uint8_t byte;
    assert_false(wire_read(server, fd, &byte, 1)); /* it was closed */
    assert_int_equal(1, pl_endpoint_count(server).received_messages);
    check_task(w, server, &w->keys, worker1); /* restarted it is admitted */
    close(fd);
    pl_outbox_close(&outbox);
    pl_endpoint_free(server, 0);
}

/* A task that takes another's identity is recognised by its key. */
static void admission_distinguishes_tasks_by_their_keys(void **state)
{
    world *w = *state;
    pl_endpoint *server = listen_with(w, &w->keys);
    static const pl_principal *const who[] = { &worker0, &worker1 };
    pl_outbox outboxes[2] = { { .count = 0 }, { .count = 0 } };
    int fds[2];
    for (int i = 0; i < 2; i++) {
        pl_handshake_config config = as_task(w, server, &w->keys, *who[i]);
        pl_handshake handshake;
        pl_cipher *cipher = NULL;
        fds[i] = wire_connect(pl_endpoint_address(server));
        assert_int_equal(PL_HANDSHAKE_DONE,
                         wire_shake(server, fds[i], &config, &handshake));
        if (w->encrypt)
            assert_ok(pl_cipher_new(&cipher, handshake.session[0], true));
        pl_outbox_use(&outboxes[i], cipher);
        send_as(fds[i], &outboxes[i], PL_FRAME_JOIN);
        if (i == 0)
            net_expect(server, PL_FRAME_JOIN, 9, NULL, 0);
    }
    turn_until(server, NULL, was_said,
               &(said) { w, "it uses the identity of another task" });
    for (int i = 0; i < 2; i++) {
        close(fds[i]);
        pl_outbox_close(&outboxes[i]);
    }
    pl_endpoint_free(server, 0);
}

/* A changed bit, or a record played back, ends an encrypted connection. */
static void admission_notices_changed_records(void **state)
{
    world *w = *state;
    pl_endpoint *server = listen_with(w, &w->keys);
    for (int changed = 0; changed < 3; changed++) {
        pl_handshake_config config = as_task(w, server, &w->keys, worker1);
        pl_handshake handshake;
        pl_cipher *cipher;
        uint8_t record[PL_PREFIX_BYTES + PL_HEAD_BYTES + PL_CIPHER_TAG];
        pl_outgoing message;
        pl_frame frame = { .kind = PL_FRAME_JOIN, .sequence = 9 };
        config.identity[0] = (uint8_t)changed;
        int fd = wire_connect(pl_endpoint_address(server));
        assert_int_equal(PL_HANDSHAKE_DONE,
                         wire_shake(server, fd, &config, &handshake));
        assert_ok(pl_cipher_new(&cipher, handshake.session[0], true));
        pl_outgoing_init(&message, &frame, NULL);
        pl_decoder_record_prefix(record, PL_HEAD_BYTES);
        assert_true(pl_cipher_begin(cipher, record, PL_PREFIX_BYTES,
                                    record + PL_PREFIX_BYTES));
        assert_true(pl_cipher_add(cipher, message.head, PL_HEAD_BYTES));
        assert_true(
            pl_cipher_end(cipher, record + PL_PREFIX_BYTES + PL_HEAD_BYTES));
        pl_cipher_free(cipher);
        wire_send(fd, record, sizeof record);
        net_expect(server, PL_FRAME_JOIN, 9, NULL, 0);
        if (changed == 1)
            record[20] ^= 1;
        if (changed == 2)
            record[sizeof record - 1] ^= 1;
        w->log[0] = '\0';
        wire_send(fd, record, sizeof record); /* the same once more */
        turn_until(server, NULL, was_said,
                   &(said) { w, "this connection's key does not open" });
        uint8_t byte;
        assert_false(wire_read(server, fd, &byte, 1));
        close(fd);
    }
    pl_endpoint_free(server, 0);
}

/* Frames in shared memory belong to the task whose connection agreed on it. */
static void admission_identifies_peers_that_share_memory(void **state)
{
    const world *w = *state;
    pl_endpoint *server = listen_with(w, &w->keys);
    pl_endpoint *client = connect_as(w, server, &w->keys, worker1);
    char offer[PL_OFFER_BYTES], answer[PL_OFFER_BYTES];
    assert_ok(pl_endpoint_offer(client, offer));
    net_send(client, 0, PL_FRAME_JOIN, 1, offer, strlen(offer) + 1, false);
    pl_message got = net_receive(server);
    assert_ok(pl_endpoint_accept(server, got.from, got.payload, answer));
    net_send(server, got.from, PL_FRAME_WELCOME, 1, answer, strlen(answer) + 1,
             false);
    got = net_receive(client);
    assert_ok(pl_endpoint_complete(client, got.payload));
    assert_true(pl_endpoint_shared(client, 0));
    net_send(client, 0, PL_FRAME_PUSH, 2, NULL, 0, false);
    got = net_expect(server, PL_FRAME_PUSH, 2, NULL, 0);
    assert_true(pl_principal_equal(worker1, got.who));
    pl_endpoint_free(client, 0);
    pl_endpoint_free(server, 0);
}

/* The largest message fits with what encryption adds to it. */
static void admission_passes_the_largest_message(void **state)
{
    const world *w = *state;
    pl_endpoint *server = listen_with(w, &w->keys);
    pl_endpoint *client = connect_as(w, server, &w->keys, worker0);
    uint8_t *large = net_bytes(PL_FRAME_PAYLOAD_MAX, 3);
    net_send(client, 0, PL_FRAME_JOIN, 1, large, PL_FRAME_PAYLOAD_MAX, true);
    net_expect(server, PL_FRAME_JOIN, 1, large, PL_FRAME_PAYLOAD_MAX);
    pl_endpoint_free(client, 0);
    pl_endpoint_free(server, 0);
    free(large);
}

static int encrypted;
#define PLAIN(test)                                                            \
    cmocka_unit_test_setup_teardown(test, world_make, world_drop)
#define BOTH(test)                                                             \
    PLAIN(test),                                                               \
    {                                                                          \
#test " (encrypted)", test, world_make, world_drop, &encrypted         \
    }

#define ONLY_ENCRYPTED(test)                                                   \
    {                                                                          \
#test, test, world_make, world_drop, &encrypted                        \
    }

UNIT_TESTS(BOTH(admission_admits_the_tasks_of_the_job),
           PLAIN(admission_without_keys_identifies_no_task),
           BOTH(admission_refuses_another_secret),
           BOTH(admission_refuses_clients_without_keys),
           BOTH(admission_refuses_keys_where_none_are_used),
           BOTH(admission_refuses_tasks_that_the_job_lacks),
           BOTH(admission_needs_the_key_of_the_task_itself),
           BOTH(admission_needs_the_right_server),
           PLAIN(admission_needs_the_right_port),
           BOTH(admission_drops_a_task_that_sends_nonsense),
           BOTH(admission_distinguishes_tasks_by_their_keys),
           ONLY_ENCRYPTED(admission_notices_changed_records),
           BOTH(admission_identifies_peers_that_share_memory),
           BOTH(admission_passes_the_largest_message))
