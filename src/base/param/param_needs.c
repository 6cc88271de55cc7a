/* Decides where a flag has an effect: compares the conditions of its row with
 * the values of other flags and the caller's facts, and reports what is
 * missing. */
#include "base/param/param_priv.h"

#include "base/assert.h"

#include <string.h>

#define CONDITION_BYTES 160

/* One condition in three parts: "mode", '=', "async|ssp". */
typedef struct condition {
    char text[CONDITION_BYTES]; /* whole */
    char name[CONDITION_BYTES];
    char sign;          /* '=', '!' for "!=", or 0: is given */
    const char *values; /* into `text` */
} condition;

/* The next condition of `needs`; NULL after the last. */
static const char *next_condition(const char *needs, condition *out)
{
    if (needs == NULL || *needs == '\0')
        return NULL;
    size_t length = strcspn(needs, ",");
    PL_ASSERT(length < sizeof out->text);
    memcpy(out->text, needs, length);
    out->text[length] = '\0';
    size_t named = strcspn(out->text, "!=");
    memcpy(out->name, out->text, named);
    out->name[named] = '\0';
    out->sign = out->text[named];
    out->values = out->text + named + (out->sign == '!') + (out->sign != '\0');
    needs += length;
    return needs + strspn(needs, ", ");
}

static bool is_one_of(const char *value, const char *values)
{
    int length;
    const char *choice;
    for (int i = 0; (choice = pl_param_choice_at(values, i, &length)) != NULL;
         i++)
        if (strlen(value) == (size_t)length &&
            memcmp(value, choice, (size_t)length) == 0)
            return true;
    return false;
}

static bool fits(const condition *c, const char *value)
{
    if (c->sign == '\0')
        return value[0] != '\0' && strcmp(value, "false") != 0;
    return is_one_of(value, c->values) == (c->sign == '=');
}

/* Compare with the flag of that name, where its value is known. */
static bool flag_fits(const condition *c, const pl_param_facts *facts)
{
    for (size_t g = 0; g < facts->group_count; g++) {
        const pl_param_group *group = &facts->groups[g];
        const pl_param *param = pl_param_find(group, 1, c->name);
        if (param == NULL || group->target == NULL)
            continue;
        char value[CONDITION_BYTES];
        pl_param_value_text(param, group->target, value, sizeof value);
        return fits(c, value);
    }
    return true;
}

static bool holds(const condition *c, const pl_param_facts *facts)
{
    bool known = false;
    for (size_t i = 0; i < facts->count; i++) {
        const pl_param_fact *fact = &facts->list[i];
        if (strcmp(fact->name, c->name) != 0)
            continue;
        if (fact->value == NULL || fits(c, fact->value))
            return true;
        known = true;
    }
    return !known && flag_fits(c, facts);
}

/* The first condition that does not hold; false: there is none. */
static bool find_broken(const pl_param *param, const pl_param_facts *facts,
                        condition *out)
{
    const char *needs = param->needs;
    while ((needs = next_condition(needs, out)) != NULL)
        if (!holds(out, facts))
            return true;
    return false;
}

static pl_param_term find_term(const condition *c, const pl_param_facts *facts)
{
    for (size_t i = 0; i < facts->term_count; i++)
        if (strcmp(facts->terms[i].condition, c->text) == 0)
            return facts->terms[i];
    return (pl_param_term) { .condition = c->text };
}

static bool is_flag_without_value(const condition *c,
                                  const pl_param_facts *facts)
{
    const pl_param *param =
        pl_param_find(facts->groups, facts->group_count, c->name);
    return param != NULL && param->kind == PL_PARAM_FLAG;
}

/* "--mode ssp", "no --hogwild" */
static void label_text(const condition *c, const pl_param_facts *facts,
                       char *text, size_t room)
{
    char values[CONDITION_BYTES] = "";
    pl_param_term term = find_term(c, facts);
    if (c->sign != '\0')
        pl_param_choices_text(c->values, values, sizeof values);
    if (term.label != NULL)
        snprintf(text, room, "%s", term.label);
    else if (is_flag_without_value(c, facts) || strcmp(values, "false") == 0)
        snprintf(text, room, "%s--%s",
                 c->sign == '=' && strcmp(values, "false") == 0 ? "no " : "",
                 c->name);
    else
        snprintf(text, room, "%s--%s%s%s", c->sign == '!' ? "no " : "", c->name,
                 values[0] == '\0' ? "" : " ", values);
}

bool pl_param_applies(const pl_param *param, const pl_param_facts *facts)
{
    condition broken;
    return !find_broken(param, facts, &broken);
}

static pl_status refuse(const pl_param *param, const condition *broken,
                        const pl_param_facts *facts)
{
    char label[2 * CONDITION_BYTES];
    const char *refusal = find_term(broken, facts).refusal;
    if (refusal != NULL)
        return PL_FAIL(PL_USAGE, "--%s %s", param->name, refusal);
    label_text(broken, facts, label, sizeof label);
    if (strncmp(label, "no ", 3) == 0)
        return PL_FAIL(PL_USAGE,
                       "--%s has no effect with %s: leave out one of them",
                       param->name, label + 3);
    return PL_FAIL(PL_USAGE, "--%s needs %s", param->name, label);
}

pl_status pl_param_check(const pl_param_facts *facts)
{
    condition broken;
    for (size_t g = 0; g < facts->group_count; g++) {
        const pl_param_group *group = &facts->groups[g];
        for (size_t i = 0; i < group->count; i++)
            if (group->given != NULL && group->given[i] &&
                find_broken(&group->params[i], facts, &broken))
                return refuse(&group->params[i], &broken, facts);
    }
    return PL_OK;
}

void pl_param_needs_text(const pl_param *param, const pl_param_facts *facts,
                         char *text, size_t room)
{
    condition c;
    size_t used = 0;
    const char *needs = param->needs;
    text[0] = '\0';
    while ((needs = next_condition(needs, &c)) != NULL && used < room) {
        char label[2 * CONDITION_BYTES];
        label_text(&c, facts, label, sizeof label);
        int wrote = snprintf(text + used, room - used, "%s%s",
                             used > 0 ? ", " : "", label);
        used += wrote > 0 ? (size_t)wrote : 0;
    }
}
