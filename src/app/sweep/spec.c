/* spec.c - parses a sweep file and --grid: the model, its flags and the axes of
 * its grids. Names and values are checked later, when cells are made. */
#include "app/sweep/spec.h"

#include "app/sweep/published.h"
#include "base/mem.h"
#include "base/param/param.h"

#include <stdlib.h>
#include <string.h>

/* The state of the parser. */
typedef struct spec {
    char *model;
    int64_t repeat; /* 0: not given */
    pl_json *flags, *grids;
    pl_json *experiment, *data, *published, *quick; /* NULL: not given */
    const char *what;                               /* the file, and its line */
    int line;
} spec;

static void close_spec(spec *s)
{
    pl_mem_free(s->model);
    pl_json_free(s->flags);
    pl_json_free(s->grids);
    pl_json_free(s->experiment);
    pl_json_free(s->data);
    pl_json_free(s->published);
    pl_json_free(s->quick);
}

static pl_status open_spec(spec *s)
{
    *s = (spec) { 0 };
    pl_status status = pl_json_new_array(&s->flags);
    if (status == PL_OK)
        status = pl_json_new_array(&s->grids);
    if (status != PL_OK)
        close_spec(s);
    return status;
}

/* Move a part into the object, also on failure; NULL is ignored. */
static pl_status move(pl_json *json, const char *key, pl_json **part)
{
    pl_json *moved = *part;
    *part = NULL;
    return moved != NULL ? pl_json_set_take(json, key, moved) : PL_OK;
}

/* Copy the next word of *at to `word`, which must have room for all of it;
 * quotes preserve spaces.  *found is false at the end. */
static pl_status next_word(const char **at, char *word, bool *found)
{
    const char *p = *at + strspn(*at, " \t\r");
    *found = *p != '\0';
    while (*p != '\0' && strchr(" \t\r", *p) == NULL) {
        if (*p != '"' && *p != '\'') {
            *word++ = *p++;
            continue;
        }
        const char *end = strchr(p + 1, *p);
        if (end == NULL)
            return PL_FAIL(PL_USAGE, "the quote %c is not closed", *p);
        memcpy(word, p + 1, (size_t)(end - p) - 1);
        word += end - p - 1;
        p = end + 1;
    }
    *word = '\0';
    *at = p;
    return PL_OK;
}

/* "name=a,b,c" to grid[name] = [a, b, c]. */
static pl_status add_axis(pl_json *grid, char *word)
{
    char *equals = strchr(word, '=');
    if (equals == NULL || equals == word || equals[1] == '\0')
        return PL_FAIL(PL_USAGE, "\"%.80s\": expected FLAG=VALUE,VALUE,...",
                       word);
    *equals = '\0';
    if (pl_json_has(grid, word))
        return PL_FAIL(PL_USAGE, "%.80s appears twice in one grid", word);
    pl_json *values;
    PL_TRY(pl_json_new_array(&values));
    pl_status status = PL_OK;
    char *value = equals + 1;
    while (status == PL_OK) {
        char *comma = strchr(value, ',');
        if (comma != NULL)
            *comma = '\0';
        if (value[0] == '\0')
            status = PL_FAIL(PL_USAGE, "%.80s: an empty value", word);
        else
            status = pl_json_append_text(values, value);
        if (comma == NULL)
            break;
        value = comma + 1;
    }
    if (status != PL_OK) {
        pl_json_free(values);
        return status;
    }
    return pl_json_set_take(grid, word, values);
}

static pl_status add_grid(spec *s, const char *text, char *word)
{
    pl_json *grid;
    PL_TRY(pl_json_new_object(&grid));
    pl_status status = PL_OK;
    for (bool found = true; found && status == PL_OK;) {
        status = next_word(&text, word, &found);
        if (status == PL_OK && found)
            status = add_axis(grid, word);
    }
    if (status != PL_OK) {
        pl_json_free(grid);
        return status;
    }
    return pl_json_append_take(s->grids, grid);
}

/* All remaining words. */
static pl_status add_words(pl_json *list, const char *text, char *word)
{
    for (;;) {
        bool found;
        PL_TRY(next_word(&text, word, &found));
        if (!found)
            return PL_OK;
        PL_TRY(pl_json_append_text(list, word));
    }
}

static pl_status add_flags(spec *s, const char *text, char *word)
{
    return add_words(s->flags, text, word);
}

static pl_status set_model(spec *s, const char *text, char *word)
{
    bool found, more;
    PL_TRY(next_word(&text, word, &found));
    if (!found || s->model != NULL)
        return PL_FAIL(PL_USAGE,
                       found ? "a second model" : "model: expected its name");
    PL_TRY(pl_mem_copy_text(&s->model, word));
    PL_TRY(next_word(&text, word, &more));
    if (more)
        return PL_FAIL(PL_USAGE,
                       "\"%.80s\" after the model; flags belong on a line of "
                       "their own",
                       word);
    return PL_OK;
}

static pl_status set_repeat(spec *s, const char *text, char *word)
{
    bool found;
    char *end = NULL;
    PL_TRY(next_word(&text, word, &found));
    long long count = strtoll(word, &end, 10);
    if (!found || *end != '\0' || count < 1 || count > PL_SWEEP_REPEAT_MOST ||
        text[strspn(text, " \t\r")] != '\0')
        return PL_FAIL(PL_USAGE, "repeat: expected a number from 1 to %d",
                       PL_SWEEP_REPEAT_MOST);
    s->repeat = count;
    return PL_OK;
}

/* experiment ID "QUESTION" */
static pl_status set_experiment(spec *s, const char *text, char *word)
{
    bool found, more;
    if (s->experiment != NULL)
        return PL_FAIL(PL_USAGE, "a second experiment");
    PL_TRY(pl_json_new_object(&s->experiment));
    PL_TRY(next_word(&text, word, &found));
    if (found)
        PL_TRY(pl_json_set_text(s->experiment, "id", word));
    PL_TRY(next_word(&text, word, &more));
    if (more)
        PL_TRY(pl_json_set_text(s->experiment, "question", word));
    if (!more || text[strspn(text, " \t\r")] != '\0')
        return PL_FAIL(PL_USAGE, "experiment: expected ID \"QUESTION\"");
    return PL_OK;
}

/* data KIND FLAGS... */
static pl_status set_data(spec *s, const char *text, char *word)
{
    bool found;
    pl_json *flags;
    if (s->data != NULL)
        return PL_FAIL(PL_USAGE, "a second line data");
    PL_TRY(next_word(&text, word, &found));
    if (!found || strchr(word, ':') != NULL || word[0] == '-')
        return PL_FAIL(PL_USAGE,
                       "data: expected the kind of --data before its colon, "
                       "such as mnist");
    PL_TRY(pl_json_new_object(&s->data));
    PL_TRY(pl_json_set_text(s->data, "kind", word));
    PL_TRY(pl_json_new_array(&flags));
    pl_status status = add_words(flags, text, word);
    if (status != PL_OK) {
        pl_json_free(flags);
        return status;
    }
    return pl_json_set_take(s->data, "flags", flags);
}

static pl_status add_published(spec *s, const char *text, char *word)
{
    pl_json *words, *entry = NULL;
    char *at = NULL;
    PL_TRY(pl_json_new_array(&words));
    pl_status status;
    PL_TRY_OUT(status, add_words(words, text, word));
    PL_TRY_OUT(status, pl_mem_format(&at, "%s:%d", s->what, s->line));
    PL_TRY_OUT(status, pl_published_read(&entry, words, at));
    if (s->published == NULL)
        status = pl_json_new_array(&s->published);
    if (status == PL_OK)
        status = pl_json_append_take(s->published, entry);
    else
        pl_json_free(entry);
out:
    pl_json_free(words);
    pl_mem_free(at);
    return status;
}

/* quick FLAG... FLAG=VALUE,...: flags, and values of the grids to keep. */
static pl_status set_quick(spec *s, const char *text, char *word)
{
    pl_json *flags, *grid = NULL;
    bool found = true;
    if (s->quick != NULL)
        return PL_FAIL(PL_USAGE, "a second line quick");
    PL_TRY(pl_json_new_array(&flags));
    pl_status status;
    PL_TRY_OUT(status, pl_json_new_object(&grid));
    while (found) {
        PL_TRY_OUT(status, next_word(&text, word, &found));
        if (!found)
            break;
        bool axis = word[0] != '-' && strchr(word, '=') != NULL;
        PL_TRY_OUT(status, axis ? add_axis(grid, word)
                                : pl_json_append_text(flags, word));
    }
    if (pl_json_length(flags) + pl_json_length(grid) == 0) {
        status = PL_FAIL(PL_USAGE, "quick: expected flags, or FLAG=VALUE,... "
                                   "of the grid");
        goto out;
    }
    PL_TRY_OUT(status, pl_json_new_object(&s->quick));
    PL_TRY_OUT(status, move(s->quick, "flags", &flags));
    PL_TRY_OUT(status, move(s->quick, "grid", &grid));
out:
    pl_json_free(flags);
    pl_json_free(grid);
    return status;
}

static const struct entry {
    const char *name;
    pl_status (*read)(spec *s, const char *text, char *word);
} entries[] = {
    { "model", set_model },
    { "flags", add_flags },
    { "grid", add_grid },
    { "repeat", set_repeat },
    { "experiment", set_experiment },
    { "data", set_data },
    { "published", add_published },
    { "quick", set_quick },
};

#define ENTRIES (sizeof entries / sizeof *entries)

/* `word` has room for the line. */
static pl_status read_line(spec *s, const char *line, char *word)
{
    size_t first = strspn(line, " \t\r");
    size_t length = strcspn(line + first, " \t\r");
    const char *names[ENTRIES + 1] = { NULL };
    if (length == 0 || line[first] == '#')
        return PL_OK;
    for (size_t i = 0; i < ENTRIES; i++) {
        names[i] = entries[i].name;
        if (strlen(names[i]) == length &&
            memcmp(names[i], line + first, length) == 0)
            return entries[i].read(s, line + first + length, word);
    }
    memcpy(word, line + first, length);
    word[length] = '\0';
    const char *near = pl_param_nearest(word, names);
    return PL_FAIL(PL_USAGE, "\"%.80s\": expected %s", word,
                   near != NULL ? near
                                : "model, flags, grid, repeat, experiment, "
                                  "data, published or quick");
}

static pl_status read_lines(spec *s, const char *text, const char *what)
{
    char *line, *word = NULL;
    PL_TRY(PL_NEW(line, strlen(text) + 1));
    pl_status status = PL_NEW(word, strlen(text) + 1);
    s->what = what;
    for (s->line = 1; *text != '\0' && status == PL_OK; s->line++) {
        size_t length = strcspn(text, "\n");
        memcpy(line, text, length);
        line[length] = '\0';
        status = read_line(s, line, word);
        if (status != PL_OK)
            status = pl_context(status, "%s:%d", what, s->line);
        text += length + (text[length] == '\n');
    }
    pl_mem_free(line);
    pl_mem_free(word);
    return status;
}

/* The parts move into the object. */
static pl_status assemble(spec *s, pl_json **out)
{
    pl_json *json;
    PL_TRY(pl_json_new_object(&json));
    pl_status status;
    PL_TRY_OUT(status, pl_json_set_text(json, "model", s->model));
    PL_TRY_OUT(status, move(json, "flags", &s->flags));
    PL_TRY_OUT(status,
               pl_json_set_int(json, "repeat", s->repeat > 0 ? s->repeat : 1));
    PL_TRY_OUT(status, move(json, "grids", &s->grids));
    PL_TRY_OUT(status, move(json, "experiment", &s->experiment));
    PL_TRY_OUT(status, move(json, "data", &s->data));
    PL_TRY_OUT(status, move(json, "published", &s->published));
    PL_TRY_OUT(status, move(json, "quick", &s->quick));
    *out = json;
    return PL_OK;
out:
    pl_json_free(json);
    return status;
}

static pl_status finish(spec *s, const char *what, pl_json **out)
{
    if (s->model == NULL)
        return PL_FAIL(PL_USAGE, "%s: no model; expected a line: model NAME",
                       what);
    if (pl_json_length(s->grids) == 0)
        return PL_FAIL(PL_USAGE,
                       "%s: no grid; expected a line: grid FLAG=VALUE,VALUE",
                       what);
    return assemble(s, out);
}

pl_status pl_sweep_spec_parse(pl_json **out, const char *text, const char *what)
{
    spec s;
    PL_TRY(open_spec(&s));
    pl_status status = read_lines(&s, text, what);
    if (status == PL_OK)
        status = finish(&s, what, out);
    close_spec(&s);
    return status;
}

pl_status pl_sweep_spec_grid(pl_json **out, const char *model, const char *grid)
{
    spec s;
    char *word = NULL;
    PL_TRY(open_spec(&s));
    pl_status status = pl_mem_copy_text(&s.model, model);
    if (status == PL_OK)
        status = PL_NEW(word, strlen(grid) + 1);
    if (status == PL_OK)
        status = add_grid(&s, grid, word);
    if (status == PL_OK)
        status = finish(&s, "--grid", out);
    else if (status == PL_USAGE)
        status = pl_context(status, "--grid");
    pl_mem_free(word);
    close_spec(&s);
    return status;
}
