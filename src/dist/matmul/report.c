#include "dist/matmul/report.h"

#include "base/mem.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static pl_status fill(pl_json *json, const pl_matmul_report *r)
{
    PL_TRY(pl_json_set_int(json, "index", r->index));
    PL_TRY(pl_json_set_text(json, "host", r->host));
    PL_TRY(pl_json_set_real(json, "seconds", r->seconds));
    PL_TRY(pl_json_set_real(json, "waited", r->waited));
    PL_TRY(pl_json_set_real(json, "flops", r->flops));
    PL_TRY(pl_json_set_int(json, "bytes_moved", r->fetched));
    PL_TRY(pl_json_set_int(json, "checked", r->checked));
    PL_TRY(pl_json_set_int(json, "wrong", r->wrong));
    return pl_json_set_real(json, "trace", r->trace);
}

static pl_status make(pl_json **out, const pl_matmul_report *report)
{
    PL_TRY(pl_json_new_object(out));
    pl_status status = fill(*out, report);
    if (status != PL_OK)
        pl_json_free(*out);
    return status;
}

pl_status pl_matmul_report_text(const pl_matmul_report *report, char **out)
{
    pl_json *json;
    PL_TRY(make(&json, report));
    pl_status status = pl_json_text(json, 0, out);
    pl_json_free(json);
    return status;
}

static pl_status read(pl_matmul_report *out, const pl_json *json)
{
    const char *host;
    int64_t index;
    PL_TRY(
        pl_json_get_int(json, "index", 0, PL_MATMUL_WORKERS_MAX - 1, &index));
    PL_TRY(pl_json_get_text(json, "host", &host));
    PL_TRY(pl_json_get_real(json, "seconds", &out->seconds));
    PL_TRY(pl_json_get_real(json, "waited", &out->waited));
    PL_TRY(pl_json_get_real(json, "flops", &out->flops));
    PL_TRY(
        pl_json_get_int(json, "bytes_moved", 0, INT64_MAX / 64, &out->fetched));
    PL_TRY(pl_json_get_int(json, "checked", 0, INT64_MAX / 64, &out->checked));
    PL_TRY(pl_json_get_int(json, "wrong", 0, INT64_MAX / 64, &out->wrong));
    PL_TRY(pl_json_get_real(json, "trace", &out->trace));
    out->index = (int32_t)index;
    snprintf(out->host, sizeof out->host, "%s", host);
    return PL_OK;
}

pl_status pl_matmul_report_parse(pl_matmul_report *out, const char *text,
                                 size_t bytes)
{
    pl_json *json;
    PL_TRY(pl_json_parse(&json, text, bytes, "report"));
    *out = (pl_matmul_report) { 0 };
    pl_status status = read(out, json);
    pl_json_free(json);
    return status;
}

/* Of all workers. */
typedef struct total {
    pl_matmul_report sum; /* seconds: of the slowest */
    int32_t liar;         /* who had a wrong entry; -1: nobody */
    pl_json *each;
} total;

static pl_status add(total *t, const pl_matmul_report *r)
{
    pl_json *one;
    t->sum.seconds = r->seconds > t->sum.seconds ? r->seconds : t->sum.seconds;
    t->sum.flops += r->flops;
    t->sum.fetched += r->fetched;
    t->sum.checked += r->checked;
    t->sum.wrong += r->wrong;
    t->sum.trace += r->trace;
    if (r->wrong > 0 && t->liar < 0)
        t->liar = r->index;
    PL_TRY(make(&one, r));
    return pl_json_append_take(t->each, one);
}

static pl_status add_all(total *t, const pl_matmul_report *own,
                         const pl_mover *mover, int32_t workers)
{
    PL_TRY(add(t, own));
    for (int32_t w = 1; w < workers; w++) {
        const char *text = pl_mover_report(mover, w);
        pl_matmul_report one;
        pl_status status = pl_matmul_report_parse(&one, text, strlen(text));
        if (status == PL_OK && one.index != w)
            status =
                PL_FAIL(PL_PEER, "its report is that of worker %d", one.index);
        if (status != PL_OK)
            return pl_context(PL_PEER, "worker %d", w);
        PL_TRY(add(t, &one));
    }
    return PL_OK;
}

static pl_status fill_total(pl_json *json, const total *t,
                            const pl_matmul_job *job)
{
    const pl_matmul_report *s = &t->sum;
    PL_TRY(pl_json_set_text(json, "op",
                            job->op == PL_MATMUL_TRACE ? "trace" : "product"));
    PL_TRY(pl_json_set_int(json, "n", job->n));
    PL_TRY(pl_json_set_int(json, "blocks", job->blocks));
    PL_TRY(pl_json_set_int(json, "workers", job->workers));
    PL_TRY(pl_json_set_real(json, "seconds", s->seconds));
    PL_TRY(pl_json_set_real(
        json, "gflops", s->seconds > 0 ? s->flops / s->seconds * 1e-9 : NAN));
    PL_TRY(pl_json_set_int(json, "bytes_moved", s->fetched));
    PL_TRY(pl_json_set_bool(json, "verified", s->wrong == 0));
    PL_TRY(pl_json_set_int(json, "checked", s->checked));
    if (job->op == PL_MATMUL_TRACE)
        PL_TRY(pl_json_set_real(json, "trace", s->trace));
    return PL_OK;
}

static pl_status check(const total *t)
{
    if (t->sum.wrong == 0)
        return PL_OK;
    return PL_FAIL(PL_NUMERIC,
                   "%lld of %lld sampled entries are wrong, the first ones of "
                   "worker %d: its memory, processor or network changes data",
                   (long long)t->sum.wrong, (long long)t->sum.checked, t->liar);
}

pl_status pl_matmul_report_sum(pl_json **out, const pl_matmul_report *own,
                               const pl_mover *mover, const pl_matmul_job *job)
{
    total t = { .liar = -1 };
    pl_json *json = NULL;
    pl_status status;
    PL_TRY_OUT(status, pl_json_new_array(&t.each));
    PL_TRY_OUT(status, add_all(&t, own, mover, job->workers));
    PL_TRY_OUT(status, check(&t));
    PL_TRY_OUT(status, pl_json_new_object(&json));
    PL_TRY_OUT(status, fill_total(json, &t, job));
    pl_json *each = t.each;
    t.each = NULL;
    PL_TRY_OUT(status, pl_json_set_take(json, "per_worker", each));
    *out = json;
    json = NULL;
out:
    pl_json_free(json);
    pl_json_free(t.each);
    return status;
}
