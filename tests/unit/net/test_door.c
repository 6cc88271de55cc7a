/* Who gets in: real sockets, with keys and without, by both mechanisms. */
#include "net/door.h"
#include "support/net.h"

#include "base/log.h"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <zmq.h>

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

/* Turn both until `done`; neither gets a message. */
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

/* The client knows: it was told, or the connection ended before it was. */
static bool was_refused(const void *context)
{
    pl_message none;
    pl_endpoint *client = *(pl_endpoint *const *)context;
    return pl_endpoint_count(client).refused_messages > 0 ||
           pl_endpoint_receive(client, &none,
                               pl_deadline_in_ms(pl_clock_real(), 1)) ==
               PL_CLOSED;
}

/* A task of the job gets in, is known, and is answered. */
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
    assert_true(
        pl_principal_equal(keys != NULL && w->encrypt ? ps0 : none, got.who));
    pl_endpoint_free(client, 0);
}

static void door_lets_in_the_tasks_of_the_job(void **state)
{
    const world *w = *state;
    pl_endpoint *server = listen_with(w, &w->keys);
    check_task(w, server, &w->keys, worker0);
    check_task(w, server, &w->keys, worker1);
    check_task(w, server, &w->keys, ps0);
    assert_string_equal("", w->log);
    pl_endpoint_free(server, 0);
}

static void door_without_keys_knows_nobody(void **state)
{
    const world *w = *state;
    pl_endpoint *server = listen_with(w, NULL);
    check_task(w, server, NULL, worker0);
    assert_string_equal("", w->log);
    pl_endpoint_free(server, 0);
}

/* Nothing of it arrives, both sides say so, and the service goes on.  The
 * client's words are `client_says`, where it learns why. */
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

static void door_turns_away_another_secret(void **state)
{
    world *w = *state;
    check_turned_away(w, &w->keys, &w->other, worker0, "another key file?",
                      "have both the same key file?");
}

static void door_turns_away_who_has_no_keys(void **state)
{
    world *w = *state;
    check_turned_away(w, &w->keys, NULL, worker0,
                      "was it started without --keys",
                      "start this task with --keys FILE");
}

static void door_turns_away_keys_where_there_are_none(void **state)
{
    world *w = *state;
    check_turned_away(w, NULL, &w->keys, worker0, "or one with keys",
                      "was it started without --keys");
}

static void door_turns_away_tasks_the_job_does_not_have(void **state)
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
                          "have both the same key file?");
    }
}

/* --- programs that are not ours ---------------------------------------- */

static void *foreign_socket(void *context, const char *identity)
{
    void *foreign = zmq_socket(context, ZMQ_DEALER);
    int linger = 0;
    assert_non_null(foreign);
    zmq_setsockopt(foreign, ZMQ_LINGER, &linger, sizeof linger);
    zmq_setsockopt(foreign, ZMQ_ROUTING_ID, identity, strlen(identity));
    return foreign;
}

static void foreign_connect(void *foreign, const pl_endpoint *server)
{
    char address[128];
    snprintf(address, sizeof address, "tcp://%s", pl_endpoint_address(server));
    assert_int_equal(0, zmq_connect(foreign, address));
}

static void set_curve(void *foreign, const pl_curve_pair *own,
                      const pl_curve_pair *server)
{
    zmq_setsockopt(foreign, ZMQ_CURVE_PUBLICKEY, own->public_key, 32);
    zmq_setsockopt(foreign, ZMQ_CURVE_SECRETKEY, own->secret_key, 32);
    zmq_setsockopt(foreign, ZMQ_CURVE_SERVERKEY, server->public_key, 32);
}

/* As ours would, but under its own number. */
static void set_keys(const world *w, void *foreign, pl_principal who)
{
    pl_curve_pair own, server;
    char name[PL_PRINCIPAL_TEXT], password[PL_PASSWORD_TEXT];
    pl_keys_curve(&w->keys.secret, who, &own);
    pl_keys_curve(&w->keys.secret, ps0, &server);
    pl_keys_password(&w->keys.secret, who, password);
    pl_principal_text(who, name);
    if (w->encrypt) {
        set_curve(foreign, &own, &server);
    } else {
        zmq_setsockopt(foreign, ZMQ_PLAIN_USERNAME, name, strlen(name));
        zmq_setsockopt(foreign, ZMQ_PLAIN_PASSWORD, password, strlen(password));
    }
}

static void send_good(void *foreign)
{
    uint8_t good[PL_FRAME_BYTES];
    pl_frame_write(&(pl_frame) { .kind = PL_FRAME_JOIN, .sequence = 9 }, good);
    assert_int_equal(sizeof good, zmq_send(foreign, good, sizeof good, 0));
}

/* The server's public key is no secret: knowing it is not enough. */
static void door_turns_away_a_key_of_somebody_else(void **state)
{
    world *w = *state;
    pl_endpoint *server = listen_with(w, &w->keys);
    void *context = zmq_ctx_new();
    void *foreign = foreign_socket(context, "sixteen bytes id");
    pl_curve_pair own, servers;
    pl_keys_curve(&w->other.secret, worker0, &own);
    pl_keys_curve(&w->keys.secret, ps0, &servers);
    set_curve(foreign, &own, &servers);
    foreign_connect(foreign, server);
    send_good(foreign);
    turn_until(server, NULL, was_said, &(said) { w, "is it of another job" });
    assert_int_equal(0, pl_endpoint_count(server).received_messages);
    check_task(w, server, &w->keys, worker1);
    zmq_close(foreign);
    zmq_ctx_term(context);
    pl_endpoint_free(server, 0);
}

/* A password of one task does not make another of it. */
static void door_turns_away_the_password_of_another(void **state)
{
    world *w = *state;
    pl_endpoint *server = listen_with(w, &w->keys);
    void *context = zmq_ctx_new();
    void *foreign = foreign_socket(context, "sixteen bytes id");
    set_keys(w, foreign, worker0);
    zmq_setsockopt(foreign, ZMQ_PLAIN_USERNAME, "worker 1", 8);
    foreign_connect(foreign, server);
    send_good(foreign);
    turn_until(server, NULL, was_said, &(said) { w, "is it of another job" });
    zmq_close(foreign);
    zmq_ctx_term(context);
    pl_endpoint_free(server, 0);
}

static bool refused_some(const void *context)
{
    const pl_endpoint *server = *(pl_endpoint *const *)context;
    return pl_endpoint_count(server).refused_messages >= 10;
}

static void door_drops_and_names_a_task_that_sends_nonsense(void **state)
{
    world *w = *state;
    pl_endpoint *server = listen_with(w, &w->keys);
    void *context = zmq_ctx_new();
    void *foreign = foreign_socket(context, "sixteen bytes id");
    set_keys(w, foreign, worker1);
    foreign_connect(foreign, server);
    send_good(foreign);
    pl_message got = net_expect(server, PL_FRAME_JOIN, 9, NULL, 0);
    assert_true(pl_principal_equal(worker1, got.who));
    for (int i = 0; i < 8; i++)
        zmq_send(foreign, "nonsense", 8, 0);
    send_good(foreign); /* too late: nobody listens */
    send_good(foreign);
    turn_until(server, NULL, refused_some, &server);
    assert_non_null(strstr(w->log, "worker 1 at 127.0.0.1:"));
    assert_non_null(strstr(w->log, "is dropped"));
    assert_int_equal(1, pl_endpoint_count(server).received_messages);
    check_task(w, server, &w->keys, worker1); /* started anew it is welcome */
    zmq_close(foreign);
    zmq_ctx_term(context);
    pl_endpoint_free(server, 0);
}

/* Who takes another's number is seen by its keys. */
static void door_tells_tasks_apart_by_their_keys(void **state)
{
    world *w = *state;
    pl_endpoint *server = listen_with(w, &w->keys);
    void *context = zmq_ctx_new();
    void *first = foreign_socket(context, "sixteen bytes id");
    void *second = foreign_socket(context, "sixteen bytes id");
    set_keys(w, first, worker0);
    set_keys(w, second, worker1);
    foreign_connect(first, server);
    send_good(first);
    net_expect(server, PL_FRAME_JOIN, 9, NULL, 0);
    foreign_connect(second, server);
    send_good(second);
    turn_until(server, NULL, was_said,
               &(said) { w, "it speaks for another task" });
    zmq_close(first);
    zmq_close(second);
    zmq_ctx_term(context);
    pl_endpoint_free(server, 0);
}

/* What ZeroMQ would take for its versions 1 and 2, which prove nothing. */
static void door_ends_what_is_too_old_to_be_asked(void **state)
{
    world *w = *state;
    static const struct {
        const char *bytes;
        size_t count;
    } old[] = {
        { "\x01\x00\x06\x00hello", 9 },
        { "\xff\0\0\0\0\0\0\0\x01\x7f\x01\x05\0\0", 14 },
        { "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", 35 },
    };
    const pl_job_keys *keys[] = { &w->keys, NULL };
    for (size_t i = 0; i < 2 * sizeof old / sizeof *old; i++) {
        pl_endpoint *server = listen_with(w, keys[i % 2]);
        struct sockaddr_in address = { .sin_family = AF_INET };
        const char *port = strrchr(pl_endpoint_address(server), ':') + 1;
        address.sin_port = htons((uint16_t)atoi(port));
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        int fd = socket(AF_INET, SOCK_STREAM, 0);
        assert_int_equal(
            0, connect(fd, (struct sockaddr *)&address, sizeof address));
        w->log[0] = '\0';
        assert_int_equal(old[i / 2].count,
                         send(fd, old[i / 2].bytes, old[i / 2].count, 0));
        turn_until(server, NULL, was_said,
                   &(said) { w, "no paceline task is there" });
        char rest[256];
        while (recv(fd, rest, sizeof rest, 0) > 0) /* its greeting */
            ;
        close(fd);
        assert_int_equal(0, pl_endpoint_count(server).received_messages);
        check_task(w, server, keys[i % 2], worker0);
        pl_endpoint_free(server, 0);
    }
}

/* Frames in shared memory are its whose connection they were agreed over. */
static void door_knows_who_shares_memory(void **state)
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
static void door_lets_through_the_largest_message(void **state)
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

/* In a context of its own: ZeroMQ takes its time to forget an address. */
static pl_status open_and_close(const world *w)
{
    void *context = zmq_ctx_new();
    pl_door *door = NULL;
    pl_status status = pl_door_open(&door, context, &w->keys);
    zmq_ctx_shutdown(context);
    pl_door_close(door);
    zmq_ctx_term(context);
    return status;
}

static void door_open_survives_each_failed_allocation(void **state)
{
    const world *w = *state;
    assert_survives_failed_allocations(open_and_close(w), (void)0);
}

static void door_judges_what_it_is_asked(void **state)
{
    const world *w = *state;
    void *context = zmq_ctx_new();
    pl_door *door;
    pl_curve_pair pair;
    pl_principal who;
    pl_keys_curve(&w->keys.secret, worker1, &pair);
    assert_ok(pl_door_open(&door, context, &w->keys));
    pl_door_question question = { .mechanism = "CURVE",
                                  .credentials = { pair.public_key },
                                  .bytes = { 32 } };
    assert_true(pl_door_judge(door, &question, &who));
    assert_true(pl_principal_equal(worker1, who));
    question.bytes[0] = 31;
    assert_false(pl_door_judge(door, &question, &who));
    question.mechanism = "NULL";
    assert_false(pl_door_judge(door, &question, &who));
    question.mechanism = "GSSAPI";
    assert_false(pl_door_judge(door, &question, &who));
    question = (pl_door_question) { .mechanism = "PLAIN" };
    assert_false(pl_door_judge(door, &question, &who));
    zmq_ctx_shutdown(context);
    pl_door_close(door);
    zmq_ctx_term(context);
}

static int encrypted;
#define PLAIN(test)                                                            \
    cmocka_unit_test_setup_teardown(test, world_make, world_drop)
#define BOTH(test)                                                             \
    PLAIN(test),                                                               \
    {                                                                          \
#test " (CURVE)", test, world_make, world_drop, &encrypted             \
    }

UNIT_TESTS(BOTH(door_lets_in_the_tasks_of_the_job),
           PLAIN(door_without_keys_knows_nobody),
           BOTH(door_turns_away_another_secret),
           BOTH(door_turns_away_who_has_no_keys),
           BOTH(door_turns_away_keys_where_there_are_none),
           BOTH(door_turns_away_tasks_the_job_does_not_have),
           { "door_turns_away_a_key_of_somebody_else",
             door_turns_away_a_key_of_somebody_else, world_make, world_drop,
             &encrypted },
           PLAIN(door_turns_away_the_password_of_another),
           BOTH(door_drops_and_names_a_task_that_sends_nonsense),
           BOTH(door_tells_tasks_apart_by_their_keys),
           BOTH(door_ends_what_is_too_old_to_be_asked),
           BOTH(door_knows_who_shares_memory),
           BOTH(door_lets_through_the_largest_message),
           PLAIN(door_open_survives_each_failed_allocation),
           PLAIN(door_judges_what_it_is_asked))
