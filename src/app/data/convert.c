/* Convert sparse examples from one file format to another (dense.c converts
 * dense ones): when the target is opened, which ids are renumbered, and what is
 * printed about it. */
#include "app/data/dense.h"
#include "app/data/renumber.h"
#include "app/view/output.h"
#include "base/log.h"
#include "base/mem.h"
#include "data/sparse/formats/writer.h"

#include <stdio.h>
#include <string.h>

/* One conversion. */
typedef struct conversion {
    char *target;  /* FORMAT:FILE */
    FILE *notices; /* for what is printed */
    pl_data_pass pass;
    pl_source_opts opts;      /* of the writer */
    pl_renumber *renumber;    /* NULL: ids stay */
    pl_sparse_writer *writer; /* NULL before the first batch */
} conversion;

static bool is_cache(const char *target)
{
    return strncmp(target, "cache:", 6) == 0;
}

/* After the source has been opened and the numbering of its ids is known. */
static pl_status open_writer(conversion *c)
{
    if (c->pass.numbering != 0 && c->renumber != NULL)
        return PL_FAIL(PL_USAGE,
                       "--renumber: the ids of %s have already been renumbered",
                       c->pass.source);
    if (c->pass.numbering != 0 && !is_cache(c->target))
        pl_log(PL_LOG_WARN,
               "the ids of %s are renumbered, which only a cache file can "
               "record",
               c->pass.source);
    c->opts.numbering = c->renumber != NULL
                            ? pl_numbering_mark(c->renumber->numbering)
                            : c->pass.numbering;
    return pl_sparse_writer_new(&c->writer, c->target, &c->opts);
}

/* FORMAT:FILE as given, with the path of the output. */
static pl_status name_target(conversion *c, const char *given)
{
    PL_TRY(pl_sparse_writer_check(given));
    const char *colon = strchr(given, ':');
    const char *path = pl_output_path(colon + 1);
    c->notices = pl_output_notices(path);
    return pl_mem_format(&c->target, "%.*s:%s", (int)(colon - given), given,
                         path);
}

static pl_status write_batch(void *context, const pl_batch *batch)
{
    conversion *c = context;
    pl_batch numbered = *batch;
    if (c->writer == NULL)
        PL_TRY(open_writer(c));
    if (c->renumber != NULL)
        PL_TRY(pl_renumber_batch(c->renumber, batch, &numbered));
    return pl_sparse_writer_put(c->writer, &numbered);
}

static pl_status convert(conversion *c)
{
    PL_TRY(pl_data_pass_run(&c->pass));
    return pl_sparse_writer_finish(c->writer);
}

static void print_result(const conversion *c, uint64_t bytes)
{
    if (c->pass.bad > 0)
        fprintf(c->notices, "malformed examples skipped: %lld\n",
                (long long)c->pass.bad);
    if (c->renumber != NULL && c->renumber->left_out > 0)
        fprintf(c->notices,
                "non-zeros left out because their ids have no number: %lld\n",
                (long long)c->renumber->left_out);
    fprintf(c->notices, "%s: %lld examples, %.1f MB, in %.1f s\n", c->target,
            (long long)c->pass.examples, (double)bytes * 1e-6, c->pass.seconds);
}

pl_status pl_data_convert(const pl_data_convert_opts *opts)
{
    pl_renumber renumber = { .left_out = 0 };
    conversion c = {
        .opts = *opts->opts,
        .pass = { .source = opts->source,
                  .verb = "converted",
                  .opts = opts->opts,
                  .quiet = opts->quiet,
                  .use = write_batch,
                  .context = &c },
    };
    if (pl_source_is_dense(opts->source, opts->opts))
        return pl_data_convert_dense(opts);
    if (opts->renumber != NULL && !is_cache(opts->target))
        return PL_FAIL(PL_USAGE,
                       "--renumber needs cache:FILE, not %s: other formats "
                       "cannot record that their ids are renumbered",
                       opts->target);
    pl_status status = name_target(&c, opts->target);
    if (status == PL_OK && opts->renumber != NULL) {
        status = pl_renumber_init(&renumber, opts->renumber, opts->source,
                                  opts->opts, opts->quiet);
        c.renumber = &renumber;
    }
    if (status == PL_OK)
        status = convert(&c);
    if (status == PL_OK)
        print_result(&c, pl_sparse_writer_size(c.writer));
    pl_sparse_writer_free(c.writer);
    pl_renumber_close(&renumber);
    pl_mem_free(c.target);
    return status;
}
