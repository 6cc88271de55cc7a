/* dense.c - converts dense examples, and computes statistics of them: the
 * examples of each class or the numeric labels, and the values in total and,
 * for tables, by column. */
#include "app/data/dense.h"

#include "app/view/output.h"
#include "base/json/json.h"
#include "base/mem.h"
#include "base/text/quote.h"
#include "data/dense/writer.h"
#include "tensor/shape.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define COLUMNS_SHOWN 64

pl_status pl_data_convert_dense(const pl_data_convert_opts *opts)
{
    pl_dataset *set;
    if (opts->renumber != NULL)
        return PL_FAIL(PL_USAGE,
                       "--renumber is for the ids of sparse examples, "
                       "and %s has dense ones",
                       opts->source);
    PL_TRY(pl_dense_write_check(opts->target));
    PL_TRY(pl_source_open(&set, opts->source, opts->split, opts->opts));
    pl_status status =
        pl_dense_write(set, opts->target, opts->split, opts->opts->encoding);
    if (status == PL_OK)
        fprintf(pl_output_notices(strchr(opts->target, ':') + 1),
                "%s: %lld examples\n", opts->target, (long long)set->count);
    pl_dataset_free(set);
    return status;
}

/* The values of all examples, or of one column. */
typedef struct values {
    int64_t count, missing;
    double least, most, sum, squares;
} values;

typedef struct stats {
    const pl_dataset *set;
    values all;
    values *columns; /* NULL: too many, or not a table */
    int64_t column_count;
    int64_t *classes; /* examples of each; NULL: no labels, or numeric ones */
    values *labels;   /* of each number of a numeric label; NULL: none */
} stats;

static void add_value(values *v, double value)
{
    if (isnan(value)) {
        v->missing++;
        return;
    }
    v->least = v->count == 0 || value < v->least ? value : v->least;
    v->most = v->count == 0 || value > v->most ? value : v->most;
    v->sum += value;
    v->squares += value * value;
    v->count++;
}

static double mean_of(const values *v)
{
    return v->count > 0 ? v->sum / (double)v->count : (double)NAN;
}

static double deviation_of(const values *v)
{
    double mean = mean_of(v);
    double square = v->count > 0 ? v->squares / (double)v->count : (double)NAN;
    return sqrt(square > mean * mean ? square - mean * mean : 0);
}

static double value_at(const pl_view *view, int64_t row, int64_t column)
{
    return view->dtype == PL_UINT8 ? (double)pl_view_row_u8(view, row)[column]
                                   : (double)pl_view_row_f32(view, row)[column];
}

static pl_status make_counts(stats *s)
{
    const pl_dataset *set = s->set;
    if (set->labels.data == NULL)
        return PL_OK;
    if (set->numeric)
        return PL_NEW(s->labels, (size_t)set->classes);
    return PL_NEW(s->classes, (size_t)set->classes);
}

static void count_label(stats *s, int64_t row)
{
    const pl_view *labels = &s->set->labels;
    if (s->classes != NULL)
        s->classes[pl_view_label(labels, row)]++;
    for (int32_t i = 0; s->labels != NULL && i < s->set->classes; i++)
        add_value(&s->labels[i], (double)pl_view_row_f32(labels, row)[i]);
}

static pl_status count(stats *s)
{
    const pl_dataset *set = s->set;
    int64_t row = pl_shape_row(set->shape);
    if (set->shape.rank == 1 && row <= COLUMNS_SHOWN) {
        s->column_count = row;
        PL_TRY(PL_NEW(s->columns, (size_t)row));
    }
    PL_TRY(make_counts(s));
    for (int64_t r = 0; r < set->count; r++) {
        count_label(s, r);
        for (int64_t c = 0; c < row; c++) {
            double value = value_at(&set->features, r, c);
            add_value(&s->all, value);
            if (s->columns != NULL)
                add_value(&s->columns[c], value);
        }
    }
    return pl_dataset_check(set, true);
}

static int64_t bytes_of(const pl_dataset *set)
{
    return set->count * pl_shape_row(set->shape) *
           pl_dtype_bytes(set->features.dtype);
}

static void print_values(const char *title, const values *v)
{
    printf("  %-11s %g to %g, mean %.6g, deviation %.6g", title, v->least,
           v->most, mean_of(v), deviation_of(v));
    if (v->missing > 0)
        printf(", %lld missing", (long long)v->missing);
    printf("\n");
}

static void print_classes(const stats *s, const pl_encoding *encoding)
{
    for (int32_t c = 0; c < s->set->classes; c++) {
        const char *name = pl_encoding_class(encoding, c);
        char text[1024]; /* from a file or a folder's name */
        printf("  class %-5d %lld (%.2f %%)%s%s\n", c, (long long)s->classes[c],
               100 * (double)s->classes[c] / (double)s->set->count,
               name != NULL ? "  " : "",
               pl_quote_line(text, sizeof text, name != NULL ? name : ""));
    }
}

static void print_labels(const stats *s, const pl_encoding *encoding)
{
    char title[32];
    if (s->classes != NULL)
        print_classes(s, encoding);
    else if (s->labels == NULL)
        printf("  no labels\n");
    for (int32_t i = 0; s->labels != NULL && i < s->set->classes; i++) {
        snprintf(title, sizeof title, "label %d", i);
        print_values(s->set->classes > 1 ? title : "label", &s->labels[i]);
    }
}

static void print_text(const stats *s, const pl_data_stats_opts *opts)
{
    char text[PL_SHAPE_TEXT], title[32], name[1024];
    printf("%s\n", pl_quote_line(name, sizeof name, s->set->name));
    printf("  examples    %lld\n", (long long)s->set->count);
    printf("  shape       %s, %s\n", pl_shape_text(s->set->shape, text),
           pl_dtype_name(s->set->features.dtype));
    printf("  bytes       %lld\n", (long long)bytes_of(s->set));
    print_values("values", &s->all);
    for (int64_t c = 0; c < s->column_count; c++) {
        snprintf(title, sizeof title, "feature %lld", (long long)c);
        print_values(title, &s->columns[c]);
    }
    print_labels(s, opts->opts->encoding);
}

static pl_status fill_values(pl_json *json, const values *v)
{
    PL_TRY(pl_json_set_real(json, "least", v->least));
    PL_TRY(pl_json_set_real(json, "most", v->most));
    PL_TRY(pl_json_set_real(json, "mean", mean_of(v)));
    PL_TRY(pl_json_set_real(json, "deviation", deviation_of(v)));
    return pl_json_set_int(json, "missing", v->missing);
}

/* A member that is an array. */
static pl_status new_list(pl_json *json, const char *key, pl_json **out)
{
    PL_TRY(pl_json_new_array(out));
    return pl_json_set_take(json, key, *out);
}

static pl_status fill_list(pl_json *json, const char *key, const values *list,
                           int64_t count)
{
    pl_json *all, *each;
    PL_TRY(new_list(json, key, &all));
    for (int64_t i = 0; i < count; i++) {
        PL_TRY(pl_json_new_object(&each));
        PL_TRY(pl_json_append_take(all, each));
        PL_TRY(fill_values(each, &list[i]));
    }
    return PL_OK;
}

static pl_status fill_json(const stats *s, pl_json *json)
{
    pl_json *list;
    PL_TRY(pl_json_set_text(json, "source", s->set->name));
    PL_TRY(pl_json_set_int(json, "examples", s->set->count));
    PL_TRY(new_list(json, "shape", &list));
    for (int d = 0; d < s->set->shape.rank; d++)
        PL_TRY(pl_json_append_int(list, s->set->shape.dim[d]));
    PL_TRY(
        pl_json_set_text(json, "type", pl_dtype_name(s->set->features.dtype)));
    PL_TRY(pl_json_set_int(json, "bytes", bytes_of(s->set)));
    PL_TRY(fill_values(json, &s->all));
    PL_TRY(fill_list(json, "features", s->columns, s->column_count));
    PL_TRY(fill_list(json, "labels", s->labels,
                     s->labels != NULL ? s->set->classes : 0));
    PL_TRY(new_list(json, "classes", &list));
    for (int32_t c = 0; s->classes != NULL && c < s->set->classes; c++)
        PL_TRY(pl_json_append_int(list, s->classes[c]));
    return PL_OK;
}

static pl_status print_json(const stats *s)
{
    pl_json *json;
    PL_TRY(pl_json_new_object(&json));
    pl_status status = fill_json(s, json);
    if (status == PL_OK)
        status = pl_json_print(json, stdout);
    pl_json_free(json);
    return status;
}

pl_status pl_data_stats_dense(const pl_data_stats_opts *opts)
{
    pl_dataset *set;
    PL_TRY(pl_source_open(&set, opts->source, opts->split, opts->opts));
    stats s = { .set = set };
    pl_status status = count(&s);
    if (status == PL_OK && opts->json)
        status = print_json(&s);
    else if (status == PL_OK)
        print_text(&s, opts);
    if (status == PL_OK && opts->picture != NULL)
        status = pl_data_picture(set, opts->picture);
    pl_mem_free(s.columns);
    pl_mem_free(s.classes);
    pl_mem_free(s.labels);
    pl_dataset_free(set);
    return status;
}
