/* What reaches a server on an open port: bytes of other programs, silent
 * connections, malicious peers that speak our protocol.  It drops and counts
 * them, names each once, and continues to serve.
 *
 * Invariants and the tests that check them:
 *   listener L1  hostile_silence_does_not_stop_the_service,
 *                hostile_thousands_cost_little
 *   listener L2  endpoint_reuses_the_number_of_a_dropped_peer
 *                (test_endpoint.c)
 *   listener L3  endpoint_receives_from_several_peers_at_once (likewise)
 *   listener L4  hostile_senders_share_a_bounded_memory
 *   listener L5  hostile_connections_leave_descriptors_free */
#include "support/wire.h"

#include "base/log.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/resource.h>

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

/* Serve until this many messages were refused. */
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

/* The greeting of another protocol (ZMTP 3). */
static void hostile_greetings_are_refused(void **state)
{
    logged *log = *state;
    pl_endpoint *server = net_listen("127.0.0.1:0");
    uint8_t greeting[64] = { 0xff, [8] = 1, [9] = 0x7f, [10] = 3 };
    memcpy(greeting + 12, "NONSENSE", 8);
    int fd = wire_connect(pl_endpoint_address(server));
    assert_int_equal(64, send(fd, greeting, sizeof greeting, 0));
    serve_until_refused(server, 1);
    assert_int_equal(1, log->lines);
    assert_non_null(strstr(log->last, "127.0.0.1:"));
    assert_non_null(strstr(log->last, "no paceline task"));
    close(fd);
    check_service(server);
    pl_endpoint_free(server, 0);
}

/* A client that has gone again is not taken for one of another user. */
static void hostile_client_that_disconnects_is_reported_as_such(void **state)
{
    logged *log = *state;
    pl_endpoint *server = net_listen("127.0.0.1:0");
    pl_handshake_config config = { .server = false };
    pl_handshake handshake;
    uint8_t hello[PL_HANDSHAKE_BYTES];
    int fd = wire_connect(pl_endpoint_address(server));
    assert_ok(pl_handshake_begin(&handshake, &config, hello));
    wire_send(fd, hello, sizeof hello);
    close(fd);
    serve_until_refused(server, 1);
    assert_non_null(strstr(log->last, "it ended the connection"));
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
        int fd = wire_connect(pl_endpoint_address(server));
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
        fds[i] = wire_connect(pl_endpoint_address(server));
        assert_int_equal(1, send(fds[i], "\xff", 1, 0)); /* slow bytes */
    }
    check_service(server);
    for (size_t i = 0; i < 50; i++)
        close(fds[i]);
    pl_endpoint_free(server, 0);
}

static void hostile_frames_are_refused_and_named_once(void **state)
{
    logged *log = *state;
    pl_endpoint *server = net_listen("127.0.0.1:0");
    int foreign = wire_join(server, "sixteen bytes id");
    uint8_t good[PL_FRAME_BYTES + 8] = { 0 };
    pl_frame frame = { .kind = PL_FRAME_PUSH, .payload_bytes = 4 };
    pl_frame_write(&frame, good);

    wire_message(foreign, "hello", 5);
    serve_until_refused(server, 1);
    assert_int_equal(1, log->lines);
    assert_non_null(strstr(log->last, "PLN1"));
    assert_non_null(strstr(log->last, "127.0.0.1:"));
    wire_message(foreign, "", 0);
    wire_message(foreign, good, PL_FRAME_BYTES); /* its payload is missing */
    wire_message(foreign, good, PL_FRAME_BYTES + 5);
    serve_until_refused(server, 4);
    assert_int_equal(1, log->lines);
    /* It took no number. */
    pl_endpoint *client = net_connect(pl_endpoint_address(server));
    net_send(client, 0, PL_FRAME_JOIN, 1, NULL, 0, false);
    assert_int_equal(0, net_expect(server, PL_FRAME_JOIN, 1, NULL, 0).from);
    pl_endpoint_free(client, 0);
    close(foreign);
    pl_endpoint_free(server, 0);
}

/* Ten are named; of the others the log says how many. */
static void hostile_floods_do_not_fill_the_log(void **state)
{
    logged *log = *state;
    pl_endpoint *server = net_listen("127.0.0.1:0");
    int foreign[50];
    for (int i = 0; i < 50; i++) {
        foreign[i] = wire_connect(pl_endpoint_address(server));
        wire_send(foreign[i], "hello", 5);
    }
    serve_until_refused(server, 50);
    pl_endpoint_free(server, 0);
    assert_int_equal(10, log->lines);
    assert_int_equal(40, log->held);
    for (int i = 0; i < 50; i++)
        close(foreign[i]);
}

/* A length beyond the limit ends the connection before a byte of it is kept,
 * and bytes that begin no message do. */
static void hostile_lengths_are_refused(void **state)
{
    logged *log = *state;
    pl_endpoint *server = net_listen("127.0.0.1:0");
    uint8_t prefix[PL_PREFIX_BYTES], byte;
    pl_decoder_message_prefix(prefix, PL_FRAME_BYTES +
                                          (size_t)PL_FRAME_PAYLOAD_MAX + 1);
    int foreign = wire_join(server, "sixteen bytes id");
    wire_send(foreign, prefix, sizeof prefix);
    serve_until_refused(server, 1);
    assert_non_null(strstr(log->last, "16777289 bytes is announced"));
    assert_false(wire_read(server, foreign, &byte, 1));
    close(foreign);
    foreign = wire_join(server, "sixteen bytes id");
    wire_send(foreign, "nonsense", 8);
    serve_until_refused(server, 2);
    assert_false(wire_read(server, foreign, &byte, 1));
    close(foreign);
    check_service(server);
    assert_int_equal(1, pl_endpoint_count(server).received_messages);
    pl_endpoint_free(server, 0);
}

/* A false server: the client drops its bytes, too. */
static void hostile_servers_are_refused(void **state)
{
    logged *log = *state;
    struct sockaddr_in at = { .sin_family = AF_INET };
    socklen_t size = sizeof at;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(0, bind(listener, (struct sockaddr *)&at, sizeof at));
    assert_int_equal(0, listen(listener, 1));
    assert_int_equal(0, getsockname(listener, (struct sockaddr *)&at, &size));
    char address[64];
    snprintf(address, sizeof address, "127.0.0.1:%d", ntohs(at.sin_port));
    pl_endpoint *client = net_connect(address);
    int fd = accept(listener, NULL, NULL);
    assert_true(fd >= 0);
    wire_send(fd, "220 smtp.example.org ESMTP\r\n", 28);
    serve_until_refused(client, 1);
    assert_int_equal(1, log->lines);
    assert_non_null(strstr(log->last, "no paceline task"));
    close(fd);
    close(listener);
    pl_endpoint_free(client, 0);
}

/* --- a thousand strangers ------------------------------------------------- */

#define STRANGERS 1000
#define KINDS     7

static int count_descriptors(void)
{
    int count = 0;
    DIR *folder = opendir("/proc/self/fd");
    assert_non_null(folder);
    while (readdir(folder) != NULL)
        count++;
    closedir(folder);
    return count;
}

static void need_descriptors(void)
{
    struct rlimit limit;
    assert_int_equal(0, getrlimit(RLIMIT_NOFILE, &limit));
    if (limit.rlim_max < 2 * STRANGERS)
        skip();
    if (limit.rlim_cur < 2 * STRANGERS)
        limit.rlim_cur = 2 * STRANGERS;
    assert_int_equal(0, setrlimit(RLIMIT_NOFILE, &limit));
}

/* One that behaves badly in its own way.  The server serves meanwhile. */
static int stranger(pl_endpoint *server, int number)
{
    static const char *const greetings[KINDS] = {
        NULL,
        "\xff\0\0\0\0\0\0\0\x01\x7f\x03\x00NULL", /* of ZeroMQ */
        "GET / HTTP/1.1\r\nHost: localhost\r\n",
        "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", /* of TLS */
        "PLH1",                                         /* and no more */
    };
    char identity[PL_IDENTITY_BYTES + 1];
    uint8_t prefix[PL_PREFIX_BYTES];
    int kind = number % KINDS;
    if (kind == 5 || kind == 6) {
        snprintf(identity, sizeof identity, "stranger %7d", number);
        int fd = wire_join(server, identity);
        pl_decoder_message_prefix(prefix, (size_t)16 << 20);
        wire_send(fd, prefix, sizeof prefix);
        uint8_t rest[PL_FRAME_BYTES] = { 1 };
        if (kind == 6) /* and the beginning of it */
            wire_send(fd, rest, sizeof rest);
        return fd;
    }
    int fd = wire_connect(pl_endpoint_address(server));
    if (greetings[kind] != NULL)
        wire_send(fd, greetings[kind],
                  kind == 1 ? 16 : strlen(greetings[kind]));
    wire_turn(server);
    return fd;
}

/* They cost a bounded number of descriptors, bytes and lines, and a task is
 * admitted among them. */
static void hostile_thousands_cost_little(void **state)
{
    logged *log = *state;
    need_descriptors();
    pl_endpoint *server = net_listen("127.0.0.1:0");
    check_service(server);
    int fds[STRANGERS];
    int64_t before = pl_mem_live_bytes();
    int descriptors = count_descriptors();
    for (int i = 0; i < STRANGERS; i++) {
        fds[i] = stranger(server, i);
        if (i % 100 == 50)
            check_service(server);
    }
    while (pl_endpoint_count(server).refused_messages < STRANGERS - 128 - 12)
        wire_turn(server);
    check_service(server);
    assert_in_range(pl_mem_live_bytes() - before, 0, 16 << 20);
    assert_in_range(count_descriptors() - descriptors - STRANGERS, 0, 128 + 24);
    assert_in_range(log->lines, 1, 60);
    for (int i = 0; i < STRANGERS; i++)
        close(fds[i]);
    pl_endpoint_free(server, 0);
}

/* Many peers that send the largest message in turn do no harm. */
static void hostile_limits_do_not_affect_busy_senders(void **state)
{
    (void)state;
    enum {
        SENDERS = 6
    };
    pl_endpoint *server = net_listen("127.0.0.1:0"), *clients[SENDERS];
    uint8_t *bytes = net_bytes(PL_FRAME_PAYLOAD_MAX, 1);
    for (uint64_t i = 0; i < SENDERS; i++) {
        clients[i] = net_connect(pl_endpoint_address(server));
        net_send(clients[i], 0, PL_FRAME_PUSH, i, bytes, PL_FRAME_PAYLOAD_MAX,
                 true);
        net_expect(server, PL_FRAME_PUSH, i, bytes, PL_FRAME_PAYLOAD_MAX);
    }
    assert_int_equal(0, pl_endpoint_count(server).refused_messages);
    for (int i = 0; i < SENDERS; i++)
        pl_endpoint_free(clients[i], 0);
    pl_endpoint_free(server, 0);
    free(bytes);
}

/* They send only a part of what they announce: together they get a bounded
 * amount of memory, and tasks are still admitted. */
static void hostile_senders_share_a_bounded_memory(void **state)
{
    (void)state;
    enum {
        SENDERS = 40,
        BYTES = 6 << 20
    };
    pl_endpoint *server = net_listen("127.0.0.1:0");
    uint8_t *bytes = net_bytes(BYTES, 1);
    int fds[SENDERS];
    int64_t before = pl_mem_live_bytes();
    for (int i = 0; i < SENDERS; i++) {
        char identity[PL_IDENTITY_BYTES + 1];
        snprintf(identity, sizeof identity, "stranger %7u", (unsigned)i % 100);
        fds[i] = wire_join(server, identity);
        pl_decoder_message_prefix(bytes, (size_t)16 << 20);
        bool open = true;
        for (size_t sent = 0; open && sent < BYTES;) {
            ssize_t more = send(fds[i], bytes + sent, BYTES - sent,
                                MSG_NOSIGNAL | MSG_DONTWAIT);
            open = more > 0 || errno == EAGAIN;
            sent += more > 0 ? (size_t)more : 0;
            wire_turn(server);
            assert_in_range(pl_mem_live_bytes() - before, 0, 60 << 20);
        }
    }
    assert_true(pl_endpoint_count(server).refused_messages >= SENDERS / 2);
    check_service(server);
    for (int i = 0; i < SENDERS; i++)
        close(fds[i]);
    pl_endpoint_free(server, 0);
    free(bytes);
}

/* With no descriptor left nothing is accepted, nothing spins, and the task's
 * own files can still be opened. */
static void hostile_connections_leave_descriptors_free(void **state)
{
    (void)state;
    struct rlimit before, few;
    pl_endpoint *server = net_listen("127.0.0.1:0");
    pl_endpoint *client = net_connect(pl_endpoint_address(server));
    net_send(client, 0, PL_FRAME_JOIN, 1, NULL, 0, false);
    net_expect(server, PL_FRAME_JOIN, 1, NULL, 0);
    int fds[60];
    for (int i = 0; i < 60; i++)
        fds[i] = wire_connect(pl_endpoint_address(server));
    assert_int_equal(0, getrlimit(RLIMIT_NOFILE, &before));
    few = before;
    few.rlim_cur = (rlim_t)fds[59] + 40;
    assert_int_equal(0, setrlimit(RLIMIT_NOFILE, &few));
    for (int i = 0; i < 20; i++)
        wire_turn(server);
    int own[10];
    for (int i = 0; i < 10; i++) {
        own[i] = open("/dev/null", O_RDONLY);
        assert_true(own[i] >= 0);
    }
    net_send(client, 0, PL_FRAME_HEARTBEAT, 2, NULL, 0, false);
    net_expect(server, PL_FRAME_HEARTBEAT, 2, NULL, 0);
    for (int i = 0; i < 10; i++)
        close(own[i]);
    for (int i = 0; i < 60; i++)
        close(fds[i]);
    assert_int_equal(0, setrlimit(RLIMIT_NOFILE, &before));
    check_service(server);
    pl_endpoint_free(client, 0);
    pl_endpoint_free(server, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, log_keep, log_restore)
UNIT_TESTS(TEST(hostile_greetings_are_refused),
           TEST(hostile_client_that_disconnects_is_reported_as_such),
           TEST(hostile_bytes_do_not_stop_the_service),
           TEST(hostile_silence_does_not_stop_the_service),
           TEST(hostile_frames_are_refused_and_named_once),
           TEST(hostile_floods_do_not_fill_the_log),
           TEST(hostile_lengths_are_refused), TEST(hostile_servers_are_refused),
           TEST(hostile_thousands_cost_little),
           TEST(hostile_senders_share_a_bounded_memory),
           TEST(hostile_limits_do_not_affect_busy_senders),
           TEST(hostile_connections_leave_descriptors_free))
