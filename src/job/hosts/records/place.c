/* Where the tasks of a host keep the run folder: decides whether the launcher's
 * folder is visible here, and makes another if not. */
#include "job/hosts/records/place.h"

#include "base/file/file.h"
#include "base/mem.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool is_token(const char *text)
{
    return strlen(text) == PL_RUN_PLACE_TOKEN &&
           strspn(text, "0123456789abcdef") == PL_RUN_PLACE_TOKEN;
}

static pl_status is_seen(const char *run, const char *token, bool *out)
{
    char *mark;
    PL_TRY(pl_mem_format(&mark, "%s/" PL_RUN_PLACE_MARK "%s", run, token));
    *out = pl_file_exists(mark);
    pl_mem_free(mark);
    return PL_OK;
}

/* <cache>/paceline/jobs/<token>-<more>, which no other user can read: hosts may
 * share the cache. */
static pl_status make_folder(const char *cache, const char *token, char **out)
{
    char *parent, *folder;
    if (cache == NULL)
        return PL_FAIL(PL_IO, "the run folder is not visible here, and HOME "
                              "is not set for another");
    PL_TRY(pl_file_join(&parent, cache, "paceline/jobs"));
    pl_status status = pl_file_make_folder(parent);
    if (status == PL_OK)
        status = pl_mem_format(&folder, "%s/%s-XXXXXX", parent, token);
    pl_mem_free(parent);
    PL_TRY(status);
    if (mkdtemp(folder) == NULL)
        status = PL_FAIL(PL_IO, "make folder %s: %s", folder, strerror(errno));
    if (status == PL_OK)
        *out = folder;
    else
        pl_mem_free(folder);
    return status;
}

static pl_status open_place(pl_run_place *place, const pl_run_place_opts *opts,
                            const char *token)
{
    pl_record_source_opts source = opts->source;
    if (place->run != NULL)
        return PL_FAIL(PL_PEER, "a second question for a run folder");
    PL_TRY(make_folder(opts->cache, token, &place->run));
    place->sent = true;
    source.run = place->run;
    PL_TRY(pl_record_source_new(&place->source, &source));
    return pl_record_sink_new(&place->sink, place->run);
}

static pl_status answer_run(pl_run_place *place, const pl_run_place_opts *opts,
                            const pl_json *question, bool there,
                            pl_json *answer)
{
    const char *run, *token;
    bool seen = false;
    PL_TRY(pl_json_get_text(question, "run", &run));
    PL_TRY(pl_json_get_text(question, "token", &token));
    if (!is_token(token))
        return PL_FAIL(PL_PEER, "the token is malformed");
    if (there || run[0] == '/')
        PL_TRY(is_seen(run, token, &seen));
    if (!seen)
        PL_TRY(open_place(place, opts, token));
    const char *own = seen ? run : place->run;
    if (!there && chdir(own) != 0)
        return PL_FAIL(PL_IO, "folder %s: %s", own, strerror(errno));
    PL_TRY(pl_json_set_bool(answer, "shared", seen));
    return pl_json_set_text(answer, "run", own);
}

pl_status pl_run_place_answer(pl_run_place *place,
                              const pl_run_place_opts *opts,
                              const pl_json *question, pl_json *answer)
{
    const char *folder;
    PL_TRY(pl_json_get_text(question, "folder", &folder));
    bool there = chdir(folder) == 0;
    if (pl_json_has(question, "run"))
        return answer_run(place, opts, question, there, answer);
    return there ? PL_OK
                 : PL_FAIL(PL_IO,
                           "folder %s: %s; launch from a folder that all hosts "
                           "have",
                           folder, strerror(errno));
}

void pl_run_place_take(pl_run_place *place, const pl_control_message *message)
{
    if (place->sink == NULL || place->failed.status != PL_OK)
        return;
    pl_status status = pl_record_sink_take(place->sink, message);
    if (status != PL_OK)
        pl_error_save(&place->failed, status);
}

pl_status pl_run_place_stored(pl_run_place *place)
{
    if (place->failed.status != PL_OK)
        return pl_error_raise(&place->failed);
    return place->source != NULL ? pl_record_source_skip(place->source) : PL_OK;
}

void pl_run_place_close(pl_run_place *place)
{
    pl_record_source_free(place->source);
    pl_record_sink_free(place->sink);
    /* If a folder is left here, the launcher reports it. */
    if (place->run != NULL && place->sent &&
        pl_file_remove_all(place->run) != PL_OK)
        place->sent = false;
    pl_mem_free(place->run);
    *place = (pl_run_place) { 0 };
}
