/* The tables of the text fields of JOIN and WELCOME.  Decides which fields are
 * required, and their ranges. */
#include "sync/ps/messages/join.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* Floats of a model: a terabyte of parameters is taken for a mistake. */
#define FLOATS_MOST INT64_C(274877906944)

#define SIZE(member)                                                           \
    PL_FIELD_INT(pl_ps_join_text, member),                                     \
        PL_FIELD_GIVEN(pl_ps_join_text, has_size)

#define TESTS(member)                                                          \
    PL_FIELD_INT(pl_ps_join_text, member),                                     \
        PL_FIELD_GIVEN(pl_ps_join_text, has_tests)

static const pl_field join_rows[] = {
    { "role", PL_FIELD_TEXT(pl_ps_join_text, role) },
    { "index", PL_FIELD_INT(pl_ps_join_text, index) },
    { "floats", SIZE(floats), .least = 1, .most = FLOATS_MOST },
    { "table_first", SIZE(table_first), .most = FLOATS_MOST },
    { "table_count", SIZE(table_count), .most = FLOATS_MOST },
    { "trained", PL_FIELD_INT(pl_ps_join_text, trained), .most = FLOATS_MOST,
      .when = PL_WHEN_SET },
    { "average_rate", PL_FIELD_REAL(pl_ps_join_text, average_rate),
      .when = PL_WHEN_SET },
    { "end_step", SIZE(end_step) },
    { "run_steps", SIZE(run_steps) },
    { "test_count", TESTS(test_count), .least = 1, .most = INT64_MAX },
    { "test_each", TESTS(test_each), .least = 1, .most = INT64_MAX },
    { "job", PL_FIELD_TEXT(pl_ps_join_text, job) },
    { "shm", PL_FIELD_TEXT(pl_ps_join_text, shm), .when = PL_WHEN_SET },
    { "host", PL_FIELD_TEXT(pl_ps_join_text, host), .when = PL_WHEN_SET },
    { "process", PL_FIELD_INT(pl_ps_join_text, process),
      PL_FIELD_GIVEN(pl_ps_join_text, has_process) },
    { "started", PL_FIELD_INT(pl_ps_join_text, started_ms),
      .when = PL_WHEN_SET },
    { "boot", PL_FIELD_TEXT(pl_ps_join_text, boot), .when = PL_WHEN_SET },
    { "run", PL_FIELD_TEXT(pl_ps_join_text, run), .when = PL_WHEN_SET },
    { "ask", PL_FIELD_BOOL(pl_ps_join_text, ask), .when = PL_WHEN_SET },
    { "settings", PL_FIELD_ANY_OBJECT(pl_ps_join_text, settings),
      .when = PL_WHEN_SET },
};
const pl_fields pl_ps_join_fields = PL_FIELDS(pl_ps_join_text, join_rows);

pl_status pl_ps_join_parse(pl_ps_join_text *out, pl_json **json,
                           const pl_message *message)
{
    uint32_t bytes = message->frame.payload_bytes;
    pl_json *join;
    if (bytes > PL_PS_JOIN_MOST)
        return PL_FAIL(PL_FORMAT, "a join of %u bytes", bytes);
    PL_TRY(pl_json_parse(&join, message->payload, bytes, "join"));
    pl_status status = pl_fields_read(&pl_ps_join_fields, join, out);
    if (status != PL_OK) {
        pl_json_free(join);
        return pl_context(status, "join");
    }
    *json = join;
    return PL_OK;
}

static const pl_field welcome_rows[] = {
    { "job", PL_FIELD_TEXT(pl_ps_welcome_text, job) },
    { "shm", PL_FIELD_TEXT(pl_ps_welcome_text, shm) },
    { "run", PL_FIELD_TEXT(pl_ps_welcome_text, run), .when = PL_WHEN_SET },
};
const pl_fields pl_ps_welcome_fields =
    PL_FIELDS(pl_ps_welcome_text, welcome_rows);

void pl_ps_job_text(uint64_t job, char text[20])
{
    text[0] = '\0';
    if (job != 0)
        snprintf(text, 20, "%016" PRIx64, job);
}

uint64_t pl_ps_job_number(const char *text)
{
    return strtoull(text, NULL, 16);
}
