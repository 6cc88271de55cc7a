#include "net/door.h"

#include "base/assert.h"
#include "base/mem.h"
#include "base/thread.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <zmq.h>

#define ZAP_ADDRESS "inproc://zeromq.zap.01"
#define WAIT_MS     1000

/* A question: version, request, domain, address, identity, mechanism, then
 * up to two credentials.  An answer: version, request, status, text, user,
 * metadata. */
enum {
    ZAP_VERSION,
    ZAP_REQUEST,
    ZAP_DOMAIN,
    ZAP_ADDRESS_PART,
    ZAP_IDENTITY,
    ZAP_MECHANISM,
    ZAP_CREDENTIALS,
    ZAP_PARTS = ZAP_CREDENTIALS + 2
};

/* One task that may come, by its public key. */
typedef struct guest {
    uint8_t public_key[PL_CURVE_BYTES];
    pl_principal who;
} guest;

struct pl_door {
    bool has_keys;
    pl_job_keys keys;
    guest *guests;
    size_t guest_count;
    void *socket; /* the thread's once it runs */
    pl_thread *thread;
    atomic_bool closing;
};

static void invite(pl_door *door, pl_principal_role role, int32_t count)
{
    for (int32_t i = 0; i < count; i++) {
        guest *g = &door->guests[door->guest_count++];
        pl_curve_pair pair;
        g->who = (pl_principal) { role, i };
        pl_keys_curve(&door->keys.secret, g->who, &pair);
        memcpy(g->public_key, pair.public_key, sizeof g->public_key);
        pl_keys_wipe(&pair, sizeof pair);
    }
}

static pl_status invite_all(pl_door *door)
{
    const pl_job_keys *keys = &door->keys;
    size_t count = (size_t)keys->workers + (size_t)keys->ps + keys->evaluator;
    PL_TRY(PL_NEW(door->guests, count));
    invite(door, PL_PRINCIPAL_WORKER, keys->workers);
    invite(door, PL_PRINCIPAL_PS, keys->ps);
    invite(door, PL_PRINCIPAL_EVALUATOR, keys->evaluator);
    return PL_OK;
}

/* The user name says who, the password must be that task's. */
static bool judge_plain(const pl_door *door, const pl_door_question *question,
                        pl_principal *who)
{
    char name[PL_PRINCIPAL_TEXT], password[PL_PASSWORD_TEXT];
    size_t length = question->bytes[0];
    if (length >= sizeof name || question->bytes[1] != sizeof password - 1)
        return false;
    memcpy(name, question->credentials[0], length);
    name[length] = '\0';
    if (!pl_principal_parse(who, name) || !pl_job_keys_has(&door->keys, *who))
        return false;
    pl_keys_password(&door->keys.secret, *who, password);
    return pl_keys_same(password, question->credentials[1],
                        sizeof password - 1);
}

/* ZeroMQ has seen that the key is its sender's; it must also be one of ours,
 * or anybody who knows the server's public key would be let in. */
static bool judge_curve(const pl_door *door, const pl_door_question *question,
                        pl_principal *who)
{
    if (question->bytes[0] != PL_CURVE_BYTES)
        return false;
    for (size_t i = 0; i < door->guest_count; i++)
        if (pl_keys_same(door->guests[i].public_key, question->credentials[0],
                         PL_CURVE_BYTES)) {
            *who = door->guests[i].who;
            return true;
        }
    return false;
}

bool pl_door_judge(const pl_door *door, const pl_door_question *question,
                   pl_principal *who)
{
    *who = (pl_principal) { PL_PRINCIPAL_NONE, 0 };
    if (!door->has_keys)
        return strcmp(question->mechanism, "NULL") == 0;
    if (strcmp(question->mechanism, "PLAIN") == 0)
        return judge_plain(door, question, who);
    if (strcmp(question->mechanism, "CURVE") == 0)
        return judge_curve(door, question, who);
    return false;
}

/* Receive one question; parts beyond those known are only counted.  All of
 * parts[] need a close.  False: nothing came. */
static bool hear(void *socket, zmq_msg_t parts[ZAP_PARTS], int *count)
{
    for (int i = 0; i < ZAP_PARTS; i++)
        zmq_msg_init(&parts[i]);
    *count = 0;
    for (bool more = true; more; ++*count) {
        /* One too many takes the place of the last: it is refused anyway. */
        zmq_msg_t *part = &parts[*count < ZAP_PARTS ? *count : ZAP_PARTS - 1];
        if (zmq_msg_recv(part, socket, 0) < 0)
            return false;
        more = zmq_msg_more(part) != 0;
    }
    return true;
}

static bool is_text(zmq_msg_t *part, const char *text)
{
    return zmq_msg_size(part) == strlen(text) &&
           memcmp(zmq_msg_data(part), text, strlen(text)) == 0;
}

static bool judge_parts(const pl_door *door, zmq_msg_t *parts, int count,
                        pl_principal *who)
{
    char mechanism[16];
    size_t length = zmq_msg_size(&parts[ZAP_MECHANISM]);
    if (count < ZAP_CREDENTIALS || count > ZAP_PARTS ||
        !is_text(&parts[ZAP_VERSION], "1.0") ||
        !is_text(&parts[ZAP_DOMAIN], PL_DOOR_DOMAIN) ||
        length >= sizeof mechanism)
        return false;
    memcpy(mechanism, zmq_msg_data(&parts[ZAP_MECHANISM]), length);
    mechanism[length] = '\0';
    pl_door_question question = { .mechanism = mechanism };
    for (int i = 0; i < 2; i++) {
        question.credentials[i] = zmq_msg_data(&parts[ZAP_CREDENTIALS + i]);
        question.bytes[i] = zmq_msg_size(&parts[ZAP_CREDENTIALS + i]);
    }
    return pl_door_judge(door, &question, who);
}

/* A failed send means that the context ends; so does the next receive. */
static void tell(void *socket, zmq_msg_t *request, bool welcome,
                 pl_principal who)
{
    char user[PL_PRINCIPAL_TEXT] = "";
    const char *status = welcome ? "200" : "400";
    const char *text = welcome ? "OK" : "not a task of this job";
    if (welcome && who.role != PL_PRINCIPAL_NONE)
        pl_principal_text(who, user);
    zmq_send(socket, "1.0", 3, ZMQ_SNDMORE);
    zmq_send(socket, zmq_msg_data(request), zmq_msg_size(request), ZMQ_SNDMORE);
    zmq_send(socket, status, 3, ZMQ_SNDMORE);
    zmq_send(socket, text, strlen(text), ZMQ_SNDMORE);
    zmq_send(socket, user, strlen(user), ZMQ_SNDMORE);
    zmq_send(socket, "", 0, 0);
}

static pl_status door_main(void *arg)
{
    pl_door *door = arg;
    while (!atomic_load(&door->closing)) {
        zmq_msg_t parts[ZAP_PARTS];
        pl_principal who;
        int count;
        if (hear(door->socket, parts, &count)) {
            bool welcome = judge_parts(door, parts, count, &who);
            tell(door->socket, &parts[ZAP_REQUEST], welcome, who);
        } else if (zmq_errno() == ETERM) {
            atomic_store(&door->closing, true);
        }
        for (int i = 0; i < ZAP_PARTS; i++)
            zmq_msg_close(&parts[i]);
    }
    return PL_OK;
}

static pl_status open_socket(pl_door *door, void *context)
{
    int wait_ms = WAIT_MS, linger_ms = 0;
    door->socket = zmq_socket(context, ZMQ_REP);
    if (door->socket == NULL ||
        zmq_setsockopt(door->socket, ZMQ_RCVTIMEO, &wait_ms, sizeof wait_ms) !=
            0 ||
        zmq_setsockopt(door->socket, ZMQ_SNDTIMEO, &wait_ms, sizeof wait_ms) !=
            0 ||
        zmq_setsockopt(door->socket, ZMQ_LINGER, &linger_ms,
                       sizeof linger_ms) != 0 ||
        zmq_bind(door->socket, ZAP_ADDRESS) != 0)
        return PL_FAIL(PL_IO, "ZeroMQ authentication: %s",
                       zmq_strerror(zmq_errno()));
    return PL_OK;
}

pl_status pl_door_open(pl_door **out, void *context, const pl_job_keys *keys)
{
    pl_door *door;
    pl_status status = PL_OK;
    PL_TRY(PL_NEW(door, 1));
    door->has_keys = keys != NULL;
    if (keys != NULL) {
        door->keys = *keys;
        PL_TRY_OUT(status, invite_all(door));
    }
    PL_TRY_OUT(status, open_socket(door, context));
    PL_TRY_OUT(status, pl_thread_start(&door->thread, "door", door_main, door));
    *out = door;
    return PL_OK;
out:
    pl_door_close(door);
    return status;
}

void pl_door_close(pl_door *door)
{
    if (door == NULL)
        return;
    atomic_store(&door->closing, true);
    PL_ASSERT(pl_thread_join(door->thread) == PL_OK);
    if (door->socket != NULL)
        zmq_close(door->socket);
    pl_mem_free(door->guests);
    pl_keys_wipe(&door->keys.secret, sizeof door->keys.secret);
    pl_mem_free(door);
}
