/* arguments.c - splits a text of flags into words, and makes flags of names and
 * values.  The flag table gives them their meaning, so errors read as on the
 * command line. */
#include "app/library/arguments.h"

#include "base/mem.h"

#include <string.h>

static pl_status add(pl_arguments *a, const char *word)
{
    PL_TRY(PL_GROW(a->argv, (size_t)a->argc, a->room));
    PL_TRY(pl_mem_copy_text(&a->argv[a->argc], word));
    a->argc++;
    return PL_OK;
}

pl_status pl_arguments_add(pl_arguments *a, const char *name, const char *value)
{
    char *word;
    PL_TRY(pl_mem_format(&word, "--%s%s%s", name, value != NULL ? "=" : "",
                         value != NULL ? value : ""));
    pl_status status = add(a, word);
    pl_mem_free(word);
    return status;
}

/* One word from *at on, without its quotes; *end is the position after it. */
static pl_status read_word(const char *at, char *word, const char **end)
{
    const char *from = at;
    char quote = '\0';
    for (; *at != '\0' && (quote != '\0' || strchr(" \t\n", *at) == NULL);
         at++) {
        if (quote != '\0' && *at == quote)
            quote = '\0';
        else if (quote == '\0' && (*at == '\'' || *at == '"'))
            quote = *at;
        else
            *word++ = *at;
    }
    *word = '\0';
    *end = at;
    if (quote != '\0')
        return PL_FAIL(PL_USAGE, "flags: a %c without its end in %.80s", quote,
                       from);
    return PL_OK;
}

static pl_status add_text(pl_arguments *a, const char *text)
{
    char *word;
    PL_TRY(PL_NEW(word, strlen(text) + 1));
    pl_status status = PL_OK;
    for (const char *at = text + strspn(text, " \t\n");
         *at != '\0' && status == PL_OK; at += strspn(at, " \t\n")) {
        status = read_word(at, word, &at);
        if (status == PL_OK)
            status = add(a, word);
    }
    pl_mem_free(word);
    return status;
}

/* "true" sets a flag without a value; "false" leaves it out. */
static pl_status add_setting(pl_arguments *a, const pl_options *options,
                             const char *name, const char *value)
{
    const pl_param *param =
        pl_param_find(options->groups, options->group_count, name);
    if (value == NULL)
        return PL_FAIL(PL_USAGE, "settings: %s has no value", name);
    if (param == NULL || param->kind != PL_PARAM_FLAG)
        return pl_arguments_add(a, name, value);
    if (strcmp(value, "true") == 0)
        return pl_arguments_add(a, name, NULL);
    if (strcmp(value, "false") == 0)
        return PL_OK;
    return PL_FAIL(PL_USAGE, "--%s: expected true or false, found \"%.80s\"",
                   name, value);
}

/* The program's own data has a source name of its own. */
static pl_status add_data(pl_arguments *a, const pl_train_opts *opts)
{
    if (opts->train != NULL)
        PL_TRY(pl_arguments_add(a, "data", PL_OPTIONS_MEMORY));
    if (opts->train == NULL && opts->test != NULL)
        PL_TRY(pl_arguments_add(a, "test-data", PL_OPTIONS_MEMORY));
    return PL_OK;
}

static pl_status add_all(pl_arguments *a, const pl_train_opts *opts,
                         const pl_options *options)
{
    PL_TRY(add_data(a, opts)); /* first: a flag that contradicts it is
                                  refused */
    if (opts->flags != NULL)
        PL_TRY(add_text(a, opts->flags));
    for (const char *const *s = opts->settings; s != NULL && *s != NULL; s += 2)
        PL_TRY(add_setting(a, options, s[0], s[1]));
    return PL_OK;
}

pl_status pl_arguments_init(pl_arguments *arguments, const pl_train_opts *opts,
                            const pl_options *options)
{
    *arguments = (pl_arguments) { 0 };
    pl_status status = add_all(arguments, opts, options);
    if (status != PL_OK)
        pl_arguments_close(arguments);
    return status;
}

void pl_arguments_close(pl_arguments *arguments)
{
    for (int i = 0; i < arguments->argc; i++)
        pl_mem_free(arguments->argv[i]);
    pl_mem_free(arguments->argv);
    *arguments = (pl_arguments) { 0 };
}
