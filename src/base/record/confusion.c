/* The field table of confusion.json, its only reader, and the results of a
 * class. Whatever the file contains, a record that was read has a count for
 * each pair of classes, valid labels and images of the size it names. */
#include "base/record/confusion.h"

#include "base/file/file.h"
#include "base/mem.h"
#include "base/text/base64.h"

#include <math.h>

#define CONFUSION_BYTES_MAX ((size_t)4 << 20)
#define CHANNELS_MAX        3
#define PIXELS_MAX          (PL_CONFUSION_SIDE * PL_CONFUSION_SIDE * CHANNELS_MAX)

static const pl_field cell_rows[] = {
    { NULL, PL_FIELD_INT(pl_confusion_cell, examples),
      .most = (int64_t)1 << 40 }, /* sums over a class do not overflow */
};
const pl_fields pl_confusion_cell_fields =
    PL_FIELDS(pl_confusion_cell, cell_rows);

static const pl_field wrong_rows[] = {
    { "index", PL_FIELD_INT(pl_misclassified, index) },
    { "label", PL_FIELD_INT(pl_misclassified, label),
      .most = PL_CONFUSION_CLASSES - 1 },
    { "predicted", PL_FIELD_INT(pl_misclassified, predicted),
      .most = PL_CONFUSION_CLASSES - 1 },
    { "probability", PL_FIELD_REAL(pl_misclassified, probability) },
    { "pixels", PL_FIELD_OWN_TEXT(pl_misclassified, pixels),
      .when = PL_WHEN_SET, .or_null = true },
};
static const pl_fields wrong_fields = PL_FIELDS(pl_misclassified, wrong_rows);

static const pl_field rows[] = {
    { "step", PL_FIELD_INT(pl_confusion, step) },
    { "classes", PL_FIELD_INT(pl_confusion, classes), .least = 1,
      .most = PL_CONFUSION_CLASSES },
    { "counts",
      PL_FIELD_LIST(pl_confusion, counts, count_count,
                    &pl_confusion_cell_fields),
      .most = PL_CONFUSION_CLASSES * PL_CONFUSION_CLASSES },
    { "width", PL_FIELD_INT(pl_confusion, width), .when = PL_WHEN_SET,
      .most = PL_CONFUSION_SIDE },
    { "height", PL_FIELD_INT(pl_confusion, height), .when = PL_WHEN_SET,
      .most = PL_CONFUSION_SIDE },
    { "channels", PL_FIELD_INT(pl_confusion, channels), .when = PL_WHEN_SET,
      .most = CHANNELS_MAX },
    { "misclassified",
      PL_FIELD_LIST(pl_confusion, wrong, wrong_count, &wrong_fields),
      .most = PL_CONFUSION_EXAMPLES },
};
const pl_fields pl_confusion_fields = PL_FIELDS(pl_confusion, rows);

static const pl_field class_rows[] = {
    { "class", PL_FIELD_INT(pl_class_result, index) },
    { "examples", PL_FIELD_INT(pl_class_result, examples) },
    { "predicted", PL_FIELD_INT(pl_class_result, predicted) },
    { "precision", PL_FIELD_REAL(pl_class_result, precision), .or_null = true },
    { "recall", PL_FIELD_REAL(pl_class_result, recall), .or_null = true },
    { "f1", PL_FIELD_REAL(pl_class_result, f1), .or_null = true },
    { "taken_for", PL_FIELD_INT(pl_class_result, taken_for), .or_null = true },
    { "taken", PL_FIELD_INT(pl_class_result, taken) },
};
const pl_fields pl_class_result_fields = PL_FIELDS(pl_class_result, class_rows);

static pl_status check_example(const pl_confusion *c, size_t i)
{
    const pl_misclassified *wrong = &c->wrong[i];
    uint8_t pixels[PIXELS_MAX];
    size_t bytes,
        expected = (size_t)c->width * (size_t)c->height * (size_t)c->channels;
    if (wrong->label >= c->classes || wrong->predicted >= c->classes)
        return PL_FAIL(PL_FORMAT,
                       "misclassified: index %zu: label %d and answer %d of "
                       "%d classes",
                       i, wrong->label, wrong->predicted, c->classes);
    if (wrong->pixels == NULL)
        return PL_OK;
    if (pl_base64_decode(pixels, sizeof pixels, &bytes, wrong->pixels) !=
            PL_OK ||
        bytes != expected)
        return PL_FAIL(PL_FORMAT,
                       "misclassified: index %zu: pixels: expected base64 of "
                       "%zu bytes",
                       i, expected);
    return PL_OK;
}

static pl_status check(const pl_confusion *c)
{
    size_t expected = (size_t)c->classes * (size_t)c->classes;
    if (c->count_count != expected)
        return PL_FAIL(PL_FORMAT, "counts: %zu numbers, expected %zu",
                       c->count_count, expected);
    if (c->channels != 0 && c->channels != 1 && c->channels != CHANNELS_MAX)
        return PL_FAIL(PL_FORMAT, "channels: found %d, expected 1 or %d",
                       c->channels, CHANNELS_MAX);
    for (size_t i = 0; i < c->wrong_count; i++)
        PL_TRY(check_example(c, i));
    return PL_OK;
}

pl_status pl_confusion_read(pl_confusion *out, const char *folder)
{
    char *file;
    pl_json *json = NULL;
    PL_TRY(pl_file_join(&file, folder, "confusion.json"));
    pl_status status = pl_json_read_file(&json, file, CONFUSION_BYTES_MAX);
    if (status == PL_OK)
        status = pl_fields_read(&pl_confusion_fields, json, out);
    pl_json_free(json);
    if (status == PL_OK) {
        status = check(out);
        if (status != PL_OK)
            pl_confusion_close(out);
    }
    if (status != PL_OK)
        status = pl_context(status, "%s", file);
    pl_mem_free(file);
    return status;
}

void pl_confusion_close(pl_confusion *confusion)
{
    pl_fields_close(&pl_confusion_fields, confusion);
}

static double share(double part, double whole)
{
    return whole > 0 ? part / whole : (double)NAN;
}

pl_class_result pl_confusion_class(const pl_confusion *confusion, int32_t index)
{
    pl_class_result result = { .index = index, .taken_for = -1 };
    int32_t classes = confusion->classes;
    for (int32_t c = 0; c < classes; c++) {
        int64_t as = confusion->counts[index * classes + c].examples;
        result.examples += as;
        result.predicted += confusion->counts[c * classes + index].examples;
        if (c != index && as > result.taken) {
            result.taken = as;
            result.taken_for = c;
        }
    }
    double right = (double)confusion->counts[index * classes + index].examples;
    result.precision = share(right, (double)result.predicted);
    result.recall = share(right, (double)result.examples);
    result.f1 = share(2 * right, (double)(result.examples + result.predicted));
    return result;
}
