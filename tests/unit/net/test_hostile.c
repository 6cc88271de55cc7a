/* What a server meets on an open port: bytes that are no ZeroMQ, connections
 * that say nothing, ZeroMQ programs that are not ours.  It drops and counts
 * them, names each once, and goes on serving. */
#include "support/net.h"

#include "base/log.h"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <zmq.h>

/* What was logged during a test. */
typedef struct logged {
    int lines;
    int held; /* that were not shown, as the lines say */
    char last[1024];
} logged;

static void keep_line(void *context, pl_log_level level, const char *line)
{
    logged *log = context;
    assert_int_equal(PL_LOG_WARN, level);
    const char *more = strstr(line, "... and ");
    if (more == NULL)
        log->lines++;
    else
        log->held += atoi(more + strlen("... and "));
    snprintf(log->last, sizeof log->last, "%s", line);
}

static int log_keep(void **state)
{
    logged *log = calloc(1, sizeof *log);
    *state = log;
    pl_log_set(keep_line, log, PL_LOG_INFO);
    return 0;
}

static int log_restore(void **state)
{
    pl_log_set(NULL, NULL, PL_LOG_INFO);
    free(*state);
    return 0;
}

static int raw_connect(const pl_endpoint *server)
{
    struct sockaddr_in address = { .sin_family = AF_INET };
    const char *port = strrchr(pl_endpoint_address(server), ':') + 1;
    address.sin_port = htons((uint16_t)atoi(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_true(fd >= 0);
    assert_int_equal(0,
                     connect(fd, (struct sockaddr *)&address, sizeof address));
    return fd;
}

/* Serve until so many messages were refused. */
static void serve_until_refused(pl_endpoint *server, int64_t count)
{
    pl_message none;
    pl_deadline deadline = net_soon();
    while (pl_endpoint_count(server).refused_messages < count) {
        assert_false(pl_deadline_passed(deadline));
        assert_int_equal(
            PL_TIMEOUT,
            pl_endpoint_receive(server, &none,
                                pl_deadline_in_ms(pl_clock_real(), 1)));
    }
}

/* A client of ours still gets through. */
static void check_service(pl_endpoint *server)
{
    pl_endpoint *client = net_connect(pl_endpoint_address(server));
    net_send(client, 0, PL_FRAME_JOIN, 7, "still", 5, false);
    pl_message got = net_expect(server, PL_FRAME_JOIN, 7, "still", 5);
    net_send(server, got.from, PL_FRAME_WELCOME, 7, NULL, 0, false);
    net_expect(client, PL_FRAME_WELCOME, 7, NULL, 0);
    pl_endpoint_free(client, 0);
}

/* A greeting of ZMTP 3 with another mechanism than the server's. */
static void hostile_greetings_are_refused(void **state)
{
    logged *log = *state;
    pl_endpoint *server = net_listen("127.0.0.1:0");
    uint8_t greeting[64] = { 0xff, [8] = 1, [9] = 0x7f, [10] = 3 };
    memcpy(greeting + 12, "NONSENSE", 8);
    int fd = raw_connect(server);
    assert_int_equal(64, send(fd, greeting, sizeof greeting, 0));
    serve_until_refused(server, 1);
    assert_int_equal(1, log->lines);
    assert_non_null(strstr(log->last, "127.0.0.1:"));
    assert_non_null(strstr(log->last, "no paceline task"));
    close(fd);
    check_service(server);
    pl_endpoint_free(server, 0);
}

/* Bytes of other protocols. */
static void hostile_bytes_do_not_stop_the_service(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
        "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"
        "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"
        "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"
        "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff",
        "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    };
    pl_endpoint *server = net_listen("127.0.0.1:0");
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        int fd = raw_connect(server);
        size_t length = strlen(texts[i]);
        assert_int_equal(length, send(fd, texts[i], length, 0));
        check_service(server);
        close(fd);
    }
    pl_endpoint_free(server, 0);
}

static void hostile_silence_does_not_stop_the_service(void **state)
{
    (void)state;
    pl_endpoint *server = net_listen("127.0.0.1:0");
    int fds[50];
    for (size_t i = 0; i < 50; i++) {
        fds[i] = raw_connect(server);
        assert_int_equal(1, send(fds[i], "\xff", 1, 0)); /* slow bytes */
    }
    check_service(server);
    for (size_t i = 0; i < 50; i++)
        close(fds[i]);
    pl_endpoint_free(server, 0);
}

/* A ZeroMQ program that is not ours, with an identity of its own or not. */
static void *foreign_connect(void *context, const pl_endpoint *server,
                             const char *identity)
{
    char address[128];
    void *foreign = zmq_socket(context, ZMQ_DEALER);
    int linger = 0;
    zmq_setsockopt(foreign, ZMQ_LINGER, &linger, sizeof linger);
    if (identity != NULL)
        zmq_setsockopt(foreign, ZMQ_ROUTING_ID, identity, strlen(identity));
    snprintf(address, sizeof address, "tcp://%s", pl_endpoint_address(server));
    assert_int_equal(0, zmq_connect(foreign, address));
    return foreign;
}

static void hostile_frames_are_refused_and_named_once(void **state)
{
    logged *log = *state;
    pl_endpoint *server = net_listen("127.0.0.1:0");
    void *context = zmq_ctx_new();
    void *foreign = foreign_connect(context, server, "sixteen bytes id");
    uint8_t good[PL_FRAME_BYTES];
    pl_frame frame = { .kind = PL_FRAME_PUSH, .payload_bytes = 4 };
    pl_frame_write(&frame, good);

    zmq_send(foreign, "hello", 5, 0);
    serve_until_refused(server, 1);
    assert_int_equal(1, log->lines);
    assert_non_null(strstr(log->last, "PLN1"));
    assert_non_null(strstr(log->last, "127.0.0.1:"));
    zmq_send(foreign, "", 0, 0);
    zmq_send(foreign, good, sizeof good, 0); /* its payload does not follow */
    zmq_send(foreign, good, sizeof good, ZMQ_SNDMORE);
    zmq_send(foreign, "12345", 5, 0);
    for (int i = 0; i < 9; i++)
        zmq_send(foreign, good, sizeof good, ZMQ_SNDMORE);
    zmq_send(foreign, good, sizeof good, 0); /* 10 parts */
    serve_until_refused(server, 5);
    assert_int_equal(1, log->lines);

    /* Frames of ours from somebody who did not choose 16 bytes. */
    void *anonymous = foreign_connect(context, server, NULL);
    zmq_send(anonymous, good, sizeof good, ZMQ_SNDMORE);
    zmq_send(anonymous, "1234", 4, 0);
    serve_until_refused(server, 6);
    assert_int_equal(2, log->lines);
    /* None of them took a number. */
    pl_endpoint *client = net_connect(pl_endpoint_address(server));
    net_send(client, 0, PL_FRAME_JOIN, 1, NULL, 0, false);
    assert_int_equal(0, net_expect(server, PL_FRAME_JOIN, 1, NULL, 0).from);
    pl_endpoint_free(client, 0);
    zmq_close(foreign);
    zmq_close(anonymous);
    zmq_ctx_term(context);
    pl_endpoint_free(server, 0);
}

/* Ten are named; of the others the log says how many. */
static void hostile_floods_do_not_fill_the_log(void **state)
{
    logged *log = *state;
    pl_endpoint *server = net_listen("127.0.0.1:0");
    void *context = zmq_ctx_new(), *foreign[50];
    for (int i = 0; i < 50; i++) {
        foreign[i] = foreign_connect(context, server, NULL);
        zmq_send(foreign[i], "hello", 5, 0);
    }
    serve_until_refused(server, 50);
    pl_endpoint_free(server, 0);
    assert_int_equal(10, log->lines);
    assert_int_equal(40, log->held);
    for (int i = 0; i < 50; i++)
        zmq_close(foreign[i]);
    zmq_ctx_term(context);
}

/* ZeroMQ ends the connection at the length, before a byte of it is kept. */
static void hostile_lengths_are_refused(void **state)
{
    (void)state;
    pl_endpoint *server = net_listen("127.0.0.1:0");
    void *context = zmq_ctx_new();
    void *foreign = foreign_connect(context, server, NULL);
    size_t bytes = (size_t)PL_FRAME_PAYLOAD_MAX + 1;
    uint8_t *large = net_bytes(bytes, 1);
    zmq_send(foreign, large, bytes, 0);
    check_service(server);
    zmq_close(foreign);
    zmq_ctx_term(context);
    free(large);
    assert_int_equal(1, pl_endpoint_count(server).received_messages);
    pl_endpoint_free(server, 0);
}

/* A server that is none: the client drops what it says, too. */
static void hostile_servers_are_refused(void **state)
{
    logged *log = *state;
    void *context = zmq_ctx_new();
    void *foreign = zmq_socket(context, ZMQ_ROUTER);
    int linger = 0;
    char address[128], identity[64];
    size_t size = sizeof address;
    zmq_setsockopt(foreign, ZMQ_LINGER, &linger, sizeof linger);
    assert_int_equal(0, zmq_bind(foreign, "tcp://127.0.0.1:*"));
    zmq_getsockopt(foreign, ZMQ_LAST_ENDPOINT, address, &size);
    pl_endpoint *client = net_connect(address + strlen("tcp://"));
    net_send(client, 0, PL_FRAME_JOIN, 1, NULL, 0, false);
    int length = zmq_recv(foreign, identity, sizeof identity, 0);
    assert_int_equal(16, length);
    zmq_send(foreign, identity, 16, ZMQ_SNDMORE);
    zmq_send(foreign, "go away", 7, 0);
    serve_until_refused(client, 1);
    assert_int_equal(1, log->lines);
    pl_endpoint_free(client, 0);
    zmq_close(foreign);
    zmq_ctx_term(context);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, log_keep, log_restore)
UNIT_TESTS(TEST(hostile_greetings_are_refused),
           TEST(hostile_bytes_do_not_stop_the_service),
           TEST(hostile_silence_does_not_stop_the_service),
           TEST(hostile_frames_are_refused_and_named_once),
           TEST(hostile_floods_do_not_fill_the_log),
           TEST(hostile_lengths_are_refused), TEST(hostile_servers_are_refused))
