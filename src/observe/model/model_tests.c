/* model_tests.c - the answers of classifiers in their last tests, as a member
 * of the model's document.  Images of the last runs are dropped if those of all
 * runs would be too large for a page. */
#include "base/text/quote.h"
#include "observe/model/model_priv.h"

#include <math.h>
#include <string.h>

#define IMAGE_BYTES_MOST ((size_t)2 << 20)

pl_status pl_model_read_test(pl_runs_model *model, pl_model_run *run,
                             const char *path)
{
    pl_status status = pl_confusion_read(&run->confusion, path);
    if (status == PL_OK || status == PL_NOTFOUND)
        return PL_OK;
    return pl_record_leave_out(model->left_out, path, status);
}

static void put_wrong(pl_buffer *out, const pl_misclassified *wrong,
                      bool pixels)
{
    pl_buffer_format(out,
                     "{\"index\":%lld,\"label\":%d,\"predicted\":%d,"
                     "\"probability\":%.6g",
                     (long long)wrong->index, wrong->label, wrong->predicted,
                     isfinite(wrong->probability) ? wrong->probability : 0);
    if (pixels && wrong->pixels != NULL) {
        pl_buffer_text(out, ",\"pixels\":");
        pl_quote_json(out, wrong->pixels);
    }
    pl_buffer_text(out, "}");
}

static size_t image_bytes(const pl_confusion *c)
{
    size_t bytes = 0;
    for (size_t i = 0; i < c->wrong_count; i++)
        if (c->wrong[i].pixels != NULL)
            bytes += strlen(c->wrong[i].pixels);
    return bytes;
}

static void put_test(pl_buffer *out, size_t run, const pl_confusion *c,
                     bool pixels)
{
    pl_buffer_format(out,
                     "{\"run\":%zu,\"step\":%lld,\"classes\":%d,\"width\":%d,"
                     "\"height\":%d,\"channels\":%d,\"counts\":[",
                     run, (long long)c->step, c->classes, c->width, c->height,
                     c->channels);
    for (size_t i = 0; i < c->count_count; i++)
        pl_buffer_format(out, "%s%lld", i > 0 ? "," : "",
                         (long long)c->counts[i].examples);
    pl_buffer_text(out, "],\"wrong\":[");
    for (size_t i = 0; i < c->wrong_count; i++) {
        pl_buffer_text(out, i > 0 ? "," : "");
        put_wrong(out, &c->wrong[i], pixels);
    }
    pl_buffer_text(out, "]}");
}

void pl_model_tests_json(const pl_runs_model *model, pl_buffer *out)
{
    size_t images = 0;
    bool any = false;
    pl_buffer_text(out, ",\n\"tests\":[");
    for (size_t i = 0; i < model->records->count; i++) {
        const pl_confusion *c = &model->runs[i].confusion;
        if (c->classes == 0)
            continue;
        images += image_bytes(c);
        pl_buffer_text(out, any ? ",\n" : "");
        put_test(out, i, c, images <= IMAGE_BYTES_MOST);
        any = true;
    }
    pl_buffer_text(out, "]");
}
