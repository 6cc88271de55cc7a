/* published.c - reads the published values of a sweep file and assigns them to
 * the cells: the first value of a line to the first cell that has the line's
 * flags, and so on.  A line with more or fewer values than cells is refused
 * once all cells are known. */
#include "app/sweep/published.h"

#include "base/mem.h"
#include "base/param/param.h"
#include "observe/compare/compare.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* "92.12" or "92.12%"; "?" gives NAN: not known. */
static pl_status read_value(const char *text, double *out)
{
    char *end;
    *out = NAN;
    if (strcmp(text, "?") == 0)
        return PL_OK;
    double value = strtod(text, &end);
    bool percent = end > text && strcmp(end, "%") == 0;
    if (end == text || (*end != '\0' && !percent) || !isfinite(value))
        return PL_FAIL(PL_USAGE,
                       "\"%.80s\": expected a number, a percentage such as "
                       "92.1%%, or ?",
                       text);
    *out = percent ? value / 100 : value;
    return PL_OK;
}

static pl_status set_result(pl_json *entry, const char *word)
{
    const char *const *results = pl_compare_results();
    for (const char *const *r = results; *r != NULL; r++)
        if (strcmp(*r, word) == 0)
            return pl_json_set_text(entry, "result", word);
    const char *near = pl_param_nearest(word, results);
    return PL_FAIL(PL_USAGE,
                   "\"%.80s\" is not a result%s%s%s; expected one that "
                   "compare shows, such as test_accuracy",
                   word, near != NULL ? " (did you mean " : "",
                   near != NULL ? near : "", near != NULL ? "?)" : "");
}

/* "mode=sync" */
static pl_status set_where(pl_json *where, const char *word, const char *equals)
{
    char *name;
    PL_TRY(pl_mem_format(&name, "%.*s", (int)(equals - word), word));
    pl_status status = pl_json_set_text(where, name, equals + 1);
    pl_mem_free(name);
    return status;
}

static pl_status add_word(pl_json *entry, pl_json *where, pl_json *values,
                          const char *word)
{
    double value;
    const char *equals = strchr(word, '=');
    if (!pl_json_has(entry, "result"))
        return set_result(entry, word);
    if (strcmp(word, "machine") == 0)
        return pl_json_set_bool(entry, "machine", true);
    if (equals != NULL)
        return set_where(where, word, equals);
    PL_TRY(read_value(word, &value));
    return pl_json_append_text(values, word);
}

pl_status pl_published_read(pl_json **out, const pl_json *words, const char *at)
{
    pl_json *entry = NULL, *where = NULL, *values = NULL, *taken;
    pl_status status;
    PL_TRY_OUT(status, pl_json_new_object(&entry));
    PL_TRY_OUT(status, pl_json_new_object(&where));
    PL_TRY_OUT(status, pl_json_new_array(&values));
    PL_TRY_OUT(status, pl_json_set_text(entry, "at", at));
    for (size_t i = 0; i < pl_json_length(words); i++) {
        const char *word;
        PL_TRY_OUT(status,
                   pl_json_as_text(pl_json_at(words, i), "words", &word));
        PL_TRY_OUT(status, add_word(entry, where, values, word));
    }
    if (pl_json_length(values) == 0) {
        status = PL_FAIL(PL_USAGE, "published: expected RESULT VALUE...");
        goto out;
    }
    taken = where;
    where = NULL;
    PL_TRY_OUT(status, pl_json_set_take(entry, "where", taken));
    taken = values;
    values = NULL;
    PL_TRY_OUT(status, pl_json_set_take(entry, "values", taken));
    *out = entry;
    entry = NULL;
out:
    pl_json_free(entry);
    pl_json_free(where);
    pl_json_free(values);
    return status;
}

pl_status pl_publisher_init(pl_publisher *publisher, const pl_json *spec)
{
    *publisher = (pl_publisher) { 0 };
    if (!pl_json_has(spec, "published"))
        return PL_OK;
    PL_TRY(pl_json_get_array(spec, "published", &publisher->entries));
    return PL_NEW(publisher->used, pl_json_length(publisher->entries) + 1);
}

void pl_publisher_close(pl_publisher *publisher)
{
    pl_mem_free(publisher->used);
    *publisher = (pl_publisher) { 0 };
}

/* True if the cell has every flag of the entry. */
static pl_status is_meant(const pl_json *entry, const pl_json *values,
                          bool *out)
{
    const pl_json *where, *given;
    const char *name, *wanted, *has;
    void *walk = NULL;
    *out = true;
    PL_TRY(pl_json_get_object(entry, "where", &where));
    while (pl_json_next(where, &walk, &name, &given)) {
        PL_TRY(pl_json_as_text(given, name, &wanted));
        *out = *out && pl_json_has(values, name) &&
               pl_json_get_text(values, name, &has) == PL_OK &&
               strcmp(has, wanted) == 0;
    }
    return PL_OK;
}

static pl_status deal(const pl_json *entry, size_t *used, bool repetition,
                      pl_json *published)
{
    const pl_json *values;
    const char *result, *text;
    double value;
    PL_TRY(pl_json_get_array(entry, "values", &values));
    PL_TRY(pl_json_get_text(entry, "result", &result));
    *used += !repetition;
    if (*used == 0 || *used > pl_json_length(values))
        return PL_OK;
    PL_TRY(pl_json_as_text(pl_json_at(values, *used - 1), "values", &text));
    PL_TRY(read_value(text, &value));
    return isnan(value) ? PL_OK : pl_json_set_real(published, result, value);
}

pl_status pl_publisher_deal(pl_publisher *publisher, const pl_json *values,
                            bool repetition, pl_json *cell)
{
    pl_json *published;
    if (publisher->entries == NULL)
        return PL_OK;
    PL_TRY(pl_json_new_object(&published));
    pl_status status = PL_OK;
    for (size_t i = 0; i < pl_json_length(publisher->entries); i++) {
        const pl_json *entry = pl_json_at(publisher->entries, i);
        bool meant = false;
        PL_TRY_OUT(status, is_meant(entry, values, &meant));
        if (meant)
            PL_TRY_OUT(status,
                       deal(entry, &publisher->used[i], repetition, published));
    }
out:
    if (status != PL_OK || pl_json_length(published) == 0) {
        pl_json_free(published);
        return status;
    }
    return pl_json_set_take(cell, "published", published);
}

pl_status pl_publisher_finish(const pl_publisher *publisher)
{
    for (size_t i = 0; i < pl_json_length(publisher->entries); i++) {
        const pl_json *entry = pl_json_at(publisher->entries, i), *values;
        const char *at, *result;
        PL_TRY(pl_json_get_text(entry, "at", &at));
        PL_TRY(pl_json_get_text(entry, "result", &result));
        PL_TRY(pl_json_get_array(entry, "values", &values));
        if (publisher->used[i] != pl_json_length(values))
            return PL_FAIL(PL_USAGE,
                           "%s: %zu values of %s; expected %zu, one for each "
                           "cell of the line",
                           at, pl_json_length(values), result,
                           publisher->used[i]);
    }
    return PL_OK;
}

static pl_status add_once(pl_json *list, const char *text)
{
    for (size_t i = 0; i < pl_json_length(list); i++) {
        const char *other;
        PL_TRY(pl_json_as_text(pl_json_at(list, i), "machine", &other));
        if (strcmp(text, other) == 0)
            return PL_OK;
    }
    return pl_json_append_text(list, text);
}

pl_status pl_published_machine(pl_json **out, const pl_json *spec)
{
    const pl_json *entries = NULL;
    pl_json *list;
    PL_TRY(pl_json_new_array(&list));
    pl_status status;
    if (pl_json_has(spec, "published"))
        PL_TRY_OUT(status, pl_json_get_array(spec, "published", &entries));
    for (size_t i = 0; i < pl_json_length(entries); i++) {
        const pl_json *entry = pl_json_at(entries, i);
        const char *result;
        if (!pl_json_has(entry, "machine"))
            continue;
        PL_TRY_OUT(status, pl_json_get_text(entry, "result", &result));
        PL_TRY_OUT(status, add_once(list, result));
    }
    *out = list;
    return PL_OK;
out:
    pl_json_free(list);
    return status;
}
