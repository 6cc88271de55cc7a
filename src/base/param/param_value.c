/* param_value.c - the values of parameters: text into a field and back. */
#include "base/param/param_priv.h"

#include "base/assert.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define CHOICES_MOST 16
#define CHOICE_BYTES 32

void pl_param_real_text(double value, char text[PL_PARAM_NUMBER_BYTES])
{
    for (int digits = 1; digits <= 17; digits++) {
        snprintf(text, PL_PARAM_NUMBER_BYTES, "%.*g", digits, value);
        if (strtod(text, NULL) == value)
            return;
    }
}

/* A limit as text: "1000000" for a whole number, not "1e+06". */
static void limit_text(double limit, char text[PL_PARAM_NUMBER_BYTES])
{
    if (limit == floor(limit) && fabs(limit) < 1e15)
        snprintf(text, PL_PARAM_NUMBER_BYTES, "%.0f", limit);
    else
        pl_param_real_text(limit, text);
}

void pl_param_range_text(const pl_param *param, char *text, size_t room)
{
    char least[PL_PARAM_NUMBER_BYTES], most[PL_PARAM_NUMBER_BYTES];
    limit_text(param->least, least);
    limit_text(param->most, most);
    if ((param->least == 0 && param->most == 0) ||
        (isinf(param->least) && isinf(param->most)))
        snprintf(text, room, "%s", "");
    else if (isinf(param->most))
        snprintf(text, room, "of at least %s", least);
    else if (isinf(param->least))
        snprintf(text, room, "of at most %s", most);
    else
        snprintf(text, room, "from %s to %s", least, most);
}

const char *pl_param_choice_at(const char *choices, int index, int *length)
{
    const char *choice = choices;
    for (; index > 0 && choice != NULL; index--) {
        choice = strchr(choice, '|');
        if (choice != NULL)
            choice++;
    }
    *length = choice == NULL ? 0 : (int)strcspn(choice, "|");
    return choice;
}

static bool within(const pl_param *param, double value)
{
    return (param->least == 0 && param->most == 0) ||
           (value >= param->least && value <= param->most);
}

/* The same sentence for every bad number. */
static pl_status bad_number(const pl_param *param, const char *text)
{
    char range[2 * PL_PARAM_NUMBER_BYTES + 16];
    pl_param_range_text(param, range, sizeof range);
    return PL_FAIL(PL_USAGE, "expected a %s%s%s, found \"%.80s\"",
                   param->kind == PL_PARAM_INT ? "whole number" : "number",
                   range[0] == '\0' ? "" : " ", range, text);
}

/* Plain decimal digits with an optional minus; false for anything else and for
 * numbers out of range. */
static bool read_whole(const char *text, int64_t *value)
{
    const char *digits = text[0] == '-' ? text + 1 : text;
    if (digits[0] == '\0' || digits[strspn(digits, "0123456789")] != '\0')
        return false;
    errno = 0;
    *value = strtoll(text, NULL, 10);
    return errno == 0;
}

static pl_status store_int(const pl_param *param, int64_t *field,
                           const char *text)
{
    int64_t value;
    if (!read_whole(text, &value) || !within(param, (double)value))
        return bad_number(param, text);
    *field = value;
    return PL_OK;
}

static pl_status store_real(const pl_param *param, double *field,
                            const char *text)
{
    /* Refuse what strtod also accepts: blanks, inf, nan, hexadecimal. */
    bool plain = text[0] != '\0' && text[strspn(text, "0123456789.eE+-")] == 0;
    char *end = NULL;
    double value = plain ? strtod(text, &end) : 0;
    if (!plain || *end != '\0' || !isfinite(value) || !within(param, value))
        return bad_number(param, text);
    *field = value;
    return PL_OK;
}

void pl_param_choices_text(const char *choices, char *text, size_t room)
{
    size_t used = 0;
    int length;
    const char *choice;
    text[0] = '\0';
    for (int i = 0; (choice = pl_param_choice_at(choices, i, &length)) != NULL;
         i++) {
        bool last = choice[length] == '\0';
        const char *before = i == 0 ? "" : last ? " or " : ", ";
        int wrote = snprintf(text + used, room - used, "%s%.*s", before, length,
                             choice);
        if (wrote < 0 || (size_t)wrote >= room - used)
            return;
        used += (size_t)wrote;
    }
}

/* The choice that `text` is probably a misspelling of. */
static bool nearest_choice(const char *choices, const char *text,
                           char near[CHOICE_BYTES])
{
    char copies[CHOICES_MOST][CHOICE_BYTES];
    const char *list[CHOICES_MOST + 1];
    int count = 0, length;
    const char *choice;
    while (count < CHOICES_MOST &&
           (choice = pl_param_choice_at(choices, count, &length)) != NULL) {
        snprintf(copies[count], CHOICE_BYTES, "%.*s", length, choice);
        list[count] = copies[count];
        count++;
    }
    list[count] = NULL;
    const char *found = pl_param_nearest(text, list);
    snprintf(near, CHOICE_BYTES, "%s", found != NULL ? found : "");
    return found != NULL;
}

static pl_status store_choice(const pl_param *param, int *field,
                              const char *text)
{
    int length;
    const char *choice;
    for (int i = 0;
         (choice = pl_param_choice_at(param->choices, i, &length)) != NULL;
         i++) {
        if (strlen(text) == (size_t)length &&
            memcmp(choice, text, (size_t)length) == 0) {
            *field = i;
            return PL_OK;
        }
    }
    char all[512], near[CHOICE_BYTES];
    pl_param_choices_text(param->choices, all, sizeof all);
    if (nearest_choice(param->choices, text, near))
        return PL_FAIL(PL_USAGE,
                       "expected %s, found \"%.80s\"; did you mean %s?", all,
                       text, near);
    return PL_FAIL(PL_USAGE, "expected %s, found \"%.80s\"", all, text);
}

/* As value_text writes it; on the command line a flag takes no value. */
static pl_status store_flag(bool *field, const char *text)
{
    *field = strcmp(text, "true") == 0;
    if (!*field && strcmp(text, "false") != 0)
        return PL_FAIL(PL_USAGE, "expected true or false, found \"%.80s\"",
                       text);
    return PL_OK;
}

static pl_status store_every(const pl_param *param, pl_every *field,
                             const char *text)
{
    bool chosen =
        param->fallback != NULL && strcmp(param->fallback, "auto") == 0;
    if (!chosen || strcmp(text, "auto") != 0)
        return pl_every_parse(field, text);
    *field = (pl_every) { .unit = PL_EVERY_AUTO };
    return PL_OK;
}

pl_status pl_param_store(const pl_param *param, void *target, const char *text)
{
    void *field = (char *)target + param->offset;
    switch (param->kind) {
    case PL_PARAM_INT:
        return store_int(param, field, text);
    case PL_PARAM_REAL:
        return store_real(param, field, text);
    case PL_PARAM_TEXT:
        *(const char **)field = text;
        return PL_OK;
    case PL_PARAM_CHOICE:
        return store_choice(param, field, text);
    case PL_PARAM_EVERY:
        return store_every(param, field, text);
    case PL_PARAM_FLAG:
        return store_flag(field, text);
    }
    return PL_OK;
}

void pl_param_clear(const pl_param *param, void *target)
{
    void *field = (char *)target + param->offset;
    switch (param->kind) {
    case PL_PARAM_INT:
        *(int64_t *)field = 0;
        break;
    case PL_PARAM_REAL:
        *(double *)field = 0;
        break;
    case PL_PARAM_TEXT:
        *(const char **)field = NULL;
        break;
    case PL_PARAM_FLAG:
        *(bool *)field = false;
        break;
    case PL_PARAM_CHOICE:
        *(int *)field = -1;
        break;
    case PL_PARAM_EVERY:
        *(pl_every *)field = (pl_every) { .unit = PL_EVERY_NEVER };
        break;
    }
}

static void every_text(pl_every every, char *text, size_t room)
{
    static const char *const units[] = {
        [PL_EVERY_NEVER] = "",      [PL_EVERY_STEPS] = "",
        [PL_EVERY_EXAMPLES] = "ex", [PL_EVERY_EPOCHS] = "ep",
        [PL_EVERY_SECONDS] = "s",   [PL_EVERY_AUTO] = "",
    };
    if (every.unit == PL_EVERY_NEVER || every.unit == PL_EVERY_AUTO)
        snprintf(text, room, "%s",
                 every.unit == PL_EVERY_NEVER ? "never" : "auto");
    else
        snprintf(text, room, "%lld%s", (long long)every.count,
                 units[every.unit]);
}

/* A number without a default that holds 0 though 0 is out of its range. */
static bool unset(const pl_param *param, double value)
{
    return param->fallback == NULL && value == 0 && !within(param, 0);
}

void pl_param_value_text(const pl_param *param, const void *target, char *text,
                         size_t room)
{
    const void *field = (const char *)target + param->offset;
    char number[PL_PARAM_NUMBER_BYTES] = "";
    int length = 0;
    const char *word = "";
    switch (param->kind) {
    case PL_PARAM_INT:
        if (!unset(param, (double)*(const int64_t *)field))
            snprintf(number, sizeof number, "%lld",
                     (long long)*(const int64_t *)field);
        word = number;
        break;
    case PL_PARAM_REAL:
        if (!unset(param, *(const double *)field))
            pl_param_real_text(*(const double *)field, number);
        word = number;
        break;
    case PL_PARAM_TEXT:
        word = *(const char *const *)field;
        break;
    case PL_PARAM_FLAG:
        word = *(const bool *)field ? "true" : "false";
        break;
    case PL_PARAM_CHOICE:
        word = *(const int *)field < 0
                   ? ""
                   : pl_param_choice_at(param->choices, *(const int *)field,
                                        &length);
        break;
    case PL_PARAM_EVERY:
        every_text(*(const pl_every *)field, number, sizeof number);
        word = number;
        break;
    }
    if (word == NULL)
        word = "";
    snprintf(text, room, "%.*s", length > 0 ? length : INT_MAX, word);
}

pl_status pl_every_parse(pl_every *out, const char *text)
{
    static const struct {
        const char *suffix;
        pl_every_unit unit;
    } units[] = { { "", PL_EVERY_STEPS },
                  { "ex", PL_EVERY_EXAMPLES },
                  { "ep", PL_EVERY_EPOCHS },
                  { "s", PL_EVERY_SECONDS } };
    if (strcmp(text, "never") == 0) {
        *out = (pl_every) { .unit = PL_EVERY_NEVER };
        return PL_OK;
    }
    char digits[PL_PARAM_NUMBER_BYTES];
    size_t length = strspn(text, "0123456789");
    int64_t count = 0;
    if (length < sizeof digits) {
        memcpy(digits, text, length);
        digits[length] = '\0';
        if (!read_whole(digits, &count))
            count = 0;
    }
    for (size_t i = 0; count >= 1 && i < sizeof units / sizeof *units; i++) {
        if (strcmp(text + length, units[i].suffix) == 0) {
            *out = (pl_every) { units[i].unit, count };
            return PL_OK;
        }
    }
    return PL_FAIL(PL_USAGE,
                   "expected how often (100 for steps, 20000ex, 1ep, 60s or "
                   "never), found \"%.80s\"",
                   text);
}
