/* Joining: what a task sends about itself before it is a member, and what it
 * learns when it is admitted.  It joins server 0 first, which assigns the
 * incarnation that identifies the task to the others. */
#include "base/mem.h"
#include "sync/ps/messages/join.h"
#include "sync/ps/worker/client_priv.h"

#include <string.h>

static pl_status join_text(const pl_ps_client *client, int32_t ps, char **out)
{
    const pl_ps_client_opts *opts = &client->opts;
    char job[20];
    pl_ps_job_text(client->view.job, job);
    pl_ps_join_text join = {
        .role = opts->role,
        .index = opts->index,
        .has_size = true,
        .floats = opts->count,
        .trained = opts->trained,
        .average_rate = opts->average_rate,
        .table_first = opts->table_first,
        .table_count = opts->table_count,
        .end_step = opts->end_step,
        .run_steps = opts->run_steps,
        .has_tests = opts->tests.count > 0,
        .test_count = opts->tests.count,
        .test_each = opts->tests.each,
        .job = job,
        .shm = client->links[ps].offer,
        .host = opts->host,
        .has_process = true,
        .process = opts->process,
        .started_ms = opts->started_ms,
        .boot = opts->boot,
        .run = opts->run,
        .settings = opts->settings,
    };
    return pl_fields_text(&pl_ps_join_fields, &join, 0, out);
}

void pl_client_ask_to_join(pl_ps_client *client, int32_t ps)
{
    pl_link *l = &client->links[ps];
    char *text = NULL;
    /* A server that is slow to answer gets the same offer each time. */
    if (client->opts.ops->offer != NULL && (l->offer[0] == '\0' || l->joined))
        client->opts.ops->offer(client->opts.context, ps, l->offer);
    if (join_text(client, ps, &text) != PL_OK) {
        pl_client_fail(client, "%s", pl_error_message());
        return;
    }
    pl_frame frame = pl_ps_join_encode(
        &(pl_ps_join) { .number = client->joins, .last_request = l->before });
    frame.payload_bytes = (uint32_t)strlen(text);
    pl_client_send(client, ps, frame, text, false);
    l->asked_ns = client->now_ns;
    pl_mem_free(text);
}

static void note_run(pl_ps_client *client, const char *run)
{
    char *copy;
    if (run == NULL || pl_mem_copy_text(&copy, run) != PL_OK)
        return;
    pl_mem_free(client->run);
    client->view.run = client->run = copy;
}

/* Server 0 has admitted us: note what it sends about the job. */
static void note_welcome(pl_ps_client *client, const pl_frame *frame,
                         const pl_ps_welcome *welcome,
                         const pl_ps_welcome_text *text)
{
    client->view.incarnation = frame->incarnation;
    client->generation = frame->generation;
    client->view.step = welcome->step;
    client->view.own = welcome->own;
    client->view.initialized = welcome->ready;
    if (text->job[0] != '\0')
        client->view.job = pl_ps_job_number(text->job);
    note_run(client, text->run);
}

/* Read the text of a WELCOME; false: malformed. */
static bool read_welcome(pl_ps_client *client, int32_t ps,
                         const pl_message *message,
                         const pl_ps_welcome *welcome)
{
    pl_ps_welcome_text text;
    pl_json *json;
    if (pl_json_parse(&json, message->payload, message->frame.payload_bytes,
                      "welcome") != PL_OK)
        return false;
    bool ok = pl_fields_read(&pl_ps_welcome_fields, json, &text) == PL_OK;
    if (ok && ps == 0)
        note_welcome(client, &message->frame, welcome, &text);
    if (ok && client->opts.ops->shared != NULL)
        client->opts.ops->shared(client->opts.context, ps, text.shm);
    pl_json_free(json);
    return ok;
}

void pl_client_on_welcome(pl_ps_client *client, int32_t ps,
                          const pl_message *message)
{
    pl_ps_welcome welcome;
    if (client->links[ps].joined || !client->joining ||
        !pl_ps_welcome_decode(&welcome, message) ||
        welcome.number != client->joins ||
        (ps > 0 && (!client->links[0].joined ||
                    message->frame.generation != client->generation)) ||
        !read_welcome(client, ps, message, &welcome))
        return;
    client->links[ps].joined = true;
    bool all = true;
    for (int32_t j = 0; j < client->opts.ps; j++) {
        if (!client->links[j].joined && ps == 0)
            pl_client_ask_to_join(client, j);
        all = all && client->links[j].joined;
    }
    client->joining = !all;
}
