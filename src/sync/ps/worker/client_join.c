/* The text of JOIN: what a task says of itself before it is a member. */
#include "sync/ps/worker/client_priv.h"

#include "base/json/json.h"

#include <inttypes.h>
#include <stdio.h>

pl_status pl_client_join_text(const pl_ps_client *client, int32_t ps,
                              char **out)
{
    const pl_ps_client_opts *opts = &client->opts;
    const char *host = opts->host != NULL ? opts->host : "";
    char job[32] = "";
    pl_json *join = NULL, *settings = NULL;
    pl_status status;
    if (client->view.job != 0)
        snprintf(job, sizeof job, "%016" PRIx64, client->view.job);
    PL_TRY_OUT(status, pl_json_new_object(&join));
    PL_TRY_OUT(status, pl_json_set_text(join, "role", opts->role));
    PL_TRY_OUT(status, pl_json_set_int(join, "index", opts->index));
    PL_TRY_OUT(status, pl_json_set_int(join, "floats", opts->count));
    PL_TRY_OUT(status, pl_json_set_int(join, "table_first", opts->table_first));
    PL_TRY_OUT(status, pl_json_set_int(join, "table_count", opts->table_count));
    PL_TRY_OUT(status, pl_json_set_int(join, "end_step", opts->end_step));
    PL_TRY_OUT(status, pl_json_set_int(join, "run_steps", opts->run_steps));
    PL_TRY_OUT(status, pl_json_set_text(join, "job", job));
    PL_TRY_OUT(status, pl_json_set_text(join, "shm", client->links[ps].offer));
    PL_TRY_OUT(status, pl_json_set_text(join, "host", host));
    PL_TRY_OUT(status, pl_json_set_int(join, "process", opts->process));
    PL_TRY_OUT(status, pl_json_set_int(join, "started", opts->started_ms));
    PL_TRY_OUT(status, pl_json_set_text(join, "boot", opts->boot));
    if (opts->run != NULL)
        PL_TRY_OUT(status, pl_json_set_text(join, "run", opts->run));
    if (opts->settings != NULL) {
        PL_TRY_OUT(status, pl_json_copy(&settings, opts->settings));
        PL_TRY_OUT(status, pl_json_set_take(join, "settings", settings));
    }
    status = pl_json_text(join, 0, out);
out:
    pl_json_free(join);
    return status;
}
