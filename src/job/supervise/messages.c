/* The control language: which members each kind of message has.  A kind is a
 * row of `kinds` with a table of its members; encoding and decoding use it.  A
 * start also has lists of words, which are not in a table. */
#include "job/supervise/messages.h"

#include "base/error.h"
#include "base/json/fields.h"
#include "base/mem.h"
#include "net/keys.h"

#include <string.h>

#define WORDS_MAX  1024 /* of a command or an environment */
#define SIGNAL_MAX 64

/* --- members ---------------------------------------------------------- */

static const pl_field task_rows[] = {
    { "role", PL_FIELD_CHOICE(pl_task, role, pl_role_names) },
    { "index", PL_FIELD_INT(pl_task, index),
      .most = PL_CLUSTER_WORKERS_MAX - 1 },
};
static const pl_fields task_fields = PL_FIELDS(pl_task, task_rows);

/* Unknown values are omitted. */
#define MAYBE .when = PL_WHEN_SET, .or_null = true
static const char *const activity_names[] = { "train", "test", "save", "join",
                                              NULL };
static const pl_field status_rows[] = {
    { "step", PL_FIELD_INT(pl_task_status, step) },
    { "own_steps", PL_FIELD_INT(pl_task_status, own_steps) },
    { "examples", PL_FIELD_INT(pl_task_status, examples) },
    { "dropped", PL_FIELD_INT(pl_task_status, dropped) },
    { "loss", PL_FIELD_REAL(pl_task_status, loss), MAYBE },
    { "loss_examples", PL_FIELD_INT(pl_task_status, loss_examples), MAYBE },
    { "test_loss", PL_FIELD_REAL(pl_task_status, test_loss), MAYBE },
    { "test_accuracy", PL_FIELD_REAL(pl_task_status, test_accuracy), MAYBE },
    { "waiting", PL_FIELD_REAL(pl_task_status, waiting), MAYBE },
    { "activity", PL_FIELD_CHOICE(pl_task_status, activity, activity_names) },
};
static const pl_fields status_fields = PL_FIELDS(pl_task_status, status_rows);

static const pl_field epoch_rows[] = {
    { "epoch", PL_FIELD_INT(pl_epoch, epoch) },
    { "step", PL_FIELD_INT(pl_epoch, step) },
    { "steps", PL_FIELD_INT(pl_epoch, steps) },
    { "seconds", PL_FIELD_REAL(pl_epoch, seconds) },
    { "examples_per_s", PL_FIELD_REAL(pl_epoch, examples_per_s), MAYBE },
    { "loss", PL_FIELD_REAL(pl_epoch, loss), MAYBE },
    { "test_loss", PL_FIELD_REAL(pl_epoch, test_loss), MAYBE },
    { "test_accuracy", PL_FIELD_REAL(pl_epoch, test_accuracy), MAYBE },
};
static const pl_fields epoch_fields = PL_FIELDS(pl_epoch, epoch_rows);

static const pl_field counts_rows[] = {
    { "faults", PL_FIELD_INT(pl_job_counts, faults) },
    { "restarts", PL_FIELD_INT(pl_job_counts, restarts) },
};
static const pl_fields counts_fields = PL_FIELDS(pl_job_counts, counts_rows);

/* --- kinds ------------------------------------------------------------ */

typedef pl_control_message message;

#define TASK                                                                   \
    {                                                                          \
        NULL, PL_FIELD_INLINE(message, task, &task_fields)                     \
    }

static const pl_field hello_rows[] = { { "version",
                                         PL_FIELD_TEXT(message, text) } };
static const pl_field address_rows[] = { { "address",
                                           PL_FIELD_TEXT(message, text) } };
static const pl_field told_status_rows[] = {
    { NULL, PL_FIELD_INLINE(message, status, &status_fields) },
};
static const pl_field told_epoch_rows[] = {
    { NULL, PL_FIELD_INLINE(message, epoch, &epoch_fields) },
};
static const pl_field lost_rows[] = { TASK };
static const pl_field rolled_rows[] = {
    { "from", PL_FIELD_INT(message, from) },
    { "step", PL_FIELD_INT(message, step) },
};
static const pl_field warning_rows[] = {
    { "step", PL_FIELD_INT(message, step) },
    { "text", PL_FIELD_TEXT(message, text) },
};
static const pl_field secret_rows[] = { { "secret",
                                          PL_FIELD_TEXT(message, secret) } };
static const pl_field cluster_rows[] = { { "cluster", PL_FIELD_ANY_OBJECT(
                                                          message, body) } };
static const pl_field told_counts_rows[] = {
    { NULL, PL_FIELD_INLINE(message, counts, &counts_fields) },
};
static const pl_field start_rows[] = {
    TASK,
    { "secret", PL_FIELD_TEXT(message, secret), .when = PL_WHEN_SET },
    { "secret_file", PL_FIELD_TEXT(message, secret_file), .when = PL_WHEN_SET },
};
static const pl_field signal_rows[] = {
    TASK,
    { "signal", PL_FIELD_INT(message, number), .least = 1, .most = SIGNAL_MAX },
};
static const pl_field output_rows[] = {
    TASK,
    { "error", PL_FIELD_BOOL(message, error) },
    { "text", PL_FIELD_TEXT(message, text) },
};
static const pl_field ended_rows[] = {
    TASK,
    { "status", PL_FIELD_INT(message, number), .least = -SIGNAL_MAX,
      .most = 255 },
    { "said", PL_FIELD_TEXT(message, text) },
};
static const pl_field record_rows[] = {
    { "path", PL_FIELD_TEXT(message, text) },
    { "offset", PL_FIELD_INT(message, offset), .most = INT64_MAX },
    { "data", PL_FIELD_TEXT(message, data) },
    { "last", PL_FIELD_BOOL(message, last) },
    { "gone", PL_FIELD_BOOL(message, gone) },
};
static const pl_field answer_rows[] = { { "id", PL_FIELD_INT(message, id) } };

#define MEMBERS(rows) PL_FIELDS(message, rows)

static const struct {
    const char *name;
    pl_fields members;
} kinds[PL_CONTROL_KINDS] = {
    [PL_CONTROL_HELLO] = { "hello", MEMBERS(hello_rows) },
    [PL_CONTROL_ADDRESS] = { "address", MEMBERS(address_rows) },
    [PL_CONTROL_STATUS] = { "status", MEMBERS(told_status_rows) },
    [PL_CONTROL_EPOCH] = { "epoch", MEMBERS(told_epoch_rows) },
    [PL_CONTROL_LOST] = { "lost", MEMBERS(lost_rows) },
    [PL_CONTROL_ROLLED] = { "rolled", MEMBERS(rolled_rows) },
    [PL_CONTROL_WARNING] = { "warning", MEMBERS(warning_rows) },
    [PL_CONTROL_CLOSING] = { .name = "closing" },
    [PL_CONTROL_FINAL] = { .name = "final" },
    [PL_CONTROL_SECRET] = { "secret", MEMBERS(secret_rows) },
    [PL_CONTROL_CLUSTER] = { "cluster", MEMBERS(cluster_rows) },
    [PL_CONTROL_COUNTS] = { "counts", MEMBERS(told_counts_rows) },
    [PL_CONTROL_GONE] = { "gone", MEMBERS(lost_rows) },
    [PL_CONTROL_END] = { .name = "end" },
    [PL_CONTROL_START] = { "start", MEMBERS(start_rows) },
    [PL_CONTROL_SIGNAL] = { "signal", MEMBERS(signal_rows) },
    [PL_CONTROL_OUTPUT] = { "output", MEMBERS(output_rows) },
    [PL_CONTROL_ENDED] = { "ended", MEMBERS(ended_rows) },
    [PL_CONTROL_HEARTBEAT] = { .name = "heartbeat" },
    [PL_CONTROL_RECORD] = { "record", MEMBERS(record_rows) },
    [PL_CONTROL_ANSWER] = { "answer", MEMBERS(answer_rows) },
    [PL_CONTROL_QUESTION] = { "", MEMBERS(answer_rows) },
};

/* --- words ------------------------------------------------------------ */

static pl_status put_words(pl_json *json, const char *key, char *const *words)
{
    pl_json *list;
    pl_status status = PL_OK;
    PL_TRY(pl_json_new_array(&list));
    for (; status == PL_OK && *words != NULL; words++)
        status = pl_json_append_text(list, *words);
    if (status != PL_OK) {
        pl_json_free(list);
        return status;
    }
    return pl_json_set_take(json, key, list);
}

static void free_words(char *const *words)
{
    for (size_t i = 0; words != NULL && words[i] != NULL; i++)
        pl_mem_free(words[i]);
    pl_mem_free((void *)words);
}

static pl_status get_words(const pl_json *json, const char *key, size_t least,
                           char *const **out)
{
    const pl_json *list;
    char **words;
    PL_TRY(pl_json_get_array(json, key, &list));
    size_t count = pl_json_length(list);
    if (count < least || count > WORDS_MAX)
        return PL_FAIL(PL_PEER, "%zu words in \"%s\", expected %zu to %d",
                       count, key, least, WORDS_MAX);
    PL_TRY(PL_NEW(words, count + 1));
    *out = words; /* freed with the message, even if only partly filled */
    for (size_t i = 0; i < count; i++) {
        const char *text;
        PL_TRY(pl_json_as_text(pl_json_at(list, i), "word", &text));
        PL_TRY(pl_mem_copy_text(&words[i], text));
    }
    return PL_OK;
}

/* --- messages --------------------------------------------------------- */

static pl_status fill(const message *m, pl_json *json)
{
    message copy = *m;
    if (copy.secret_file != NULL)
        copy.secret = NULL; /* the file is sent instead */
    PL_TRY(pl_json_set_text(json, "kind", kinds[m->kind].name));
    if (kinds[m->kind].members.count > 0)
        PL_TRY(pl_fields_add(&kinds[m->kind].members, &copy, json));
    if (m->kind != PL_CONTROL_START)
        return PL_OK;
    PL_TRY(put_words(json, "argv", m->argv));
    return put_words(json, "environment", m->environment);
}

pl_status pl_control_encode(const pl_control_message *m, pl_json **out)
{
    pl_json *json;
    PL_TRY(pl_json_new_object(&json));
    pl_status filled = fill(m, json);
    if (filled == PL_OK)
        *out = json;
    else
        pl_json_free(json);
    return filled;
}

/* Any unknown kind with an id is a question. */
static pl_status find_kind(const pl_json *json, pl_control_kind *out)
{
    const char *name;
    if (pl_json_get_text(json, "kind", &name) != PL_OK)
        return PL_FAIL(PL_PEER, "a message without a kind");
    for (int kind = 0; kind < PL_CONTROL_QUESTION; kind++)
        if (strcmp(name, kinds[kind].name) == 0) {
            *out = (pl_control_kind)kind;
            return PL_OK;
        }
    if (!pl_json_has(json, "id"))
        return PL_FAIL(PL_UNSUPPORTED, "unknown message \"%.40s\"", name);
    *out = PL_CONTROL_QUESTION;
    return PL_OK;
}

static pl_status read_members(message *m, const pl_json *json)
{
    pl_control_kind kind;
    PL_TRY(find_kind(json, &kind));
    if (kinds[kind].members.count > 0)
        PL_TRY(pl_fields_read(&kinds[kind].members, json, m));
    m->kind = kind;
    if (kind == PL_CONTROL_ANSWER || kind == PL_CONTROL_QUESTION)
        m->body = json;
    if (kind == PL_CONTROL_ADDRESS && m->text[0] == '\0')
        return PL_FAIL(PL_PEER, "an empty address");
    if (kind != PL_CONTROL_START)
        return PL_OK;
    if (m->secret == NULL && m->secret_file == NULL)
        return PL_FAIL(PL_PEER, "a start without a secret");
    PL_TRY(get_words(json, "argv", 1, &m->argv));
    return get_words(json, "environment", 0, &m->environment);
}

pl_status pl_control_decode(pl_control_message *out, pl_json *take)
{
    *out = (message) { 0 };
    pl_status read = read_members(out, take);
    out->json = take;
    if (read == PL_OK)
        return PL_OK;
    pl_control_message_close(out);
    if (read == PL_NOMEM || read == PL_UNSUPPORTED)
        return read;
    pl_error failed;
    pl_error_save(&failed, read);
    failed.status = PL_PEER;
    return pl_error_raise(&failed);
}

void pl_control_message_close(pl_control_message *m)
{
    if (m->secret != NULL) /* it lies in `json`, which we own */
        pl_keys_wipe((char *)m->secret, strlen(m->secret));
    free_words(m->argv);
    free_words(m->environment);
    pl_json_free(m->json);
    *m = (message) { 0 };
}
