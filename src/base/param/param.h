/* param.h - one table of parameters makes flags, help, manual and record.
 *
 * A pl_param describes one field of an options struct: its flag, its range, its
 * default, one line of help, where it has an effect, and its other properties.
 * A command has a list of groups, each a table with the struct it fills.  No
 * other list of flag names is needed (tools/check_flags.py looks for some).
 *
 * Threads: the tables are constant; parsing is the caller's thread. */
#ifndef PL_BASE_PARAM_PARAM_H
#define PL_BASE_PARAM_PARAM_H

#include "paceline/base.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

typedef struct pl_param_group {
    const char *title; /* "Training" */
    const pl_param *params;
    size_t count;
    void *target; /* the struct `offset` counts in */
    bool *given;  /* `count` of them: set when the user gave it; or NULL */
} pl_param_group;

/* Fill all fields with their defaults. */
pl_status pl_param_defaults(const pl_param_group *groups,
                            size_t group_count) PL_MUST_CHECK;

/* Read argv[0 .. argc-1] (without the command's name): "--name value",
 * "--name=value" or "--flag"; of two, the last counts.  The value of a TEXT
 * with `choices` begins with a digit and may be left out; the default is then
 * `choices`.  Other arguments go to positional[] (room for argc), their number
 * to *positional_count; "--" makes all that follows positional.  PL_USAGE for
 * an unknown flag (the nearest is suggested), a missing or a bad value: the
 * message names the flag, what was found and what was expected. */
pl_status pl_param_parse(const pl_param_group *groups, size_t group_count,
                         int argc, char **argv, char **positional,
                         int *positional_count) PL_MUST_CHECK;

/* Read `text` into the field of *target that `param` describes. */
pl_status pl_param_store(const pl_param *param, void *target,
                         const char *text) PL_MUST_CHECK;

/* The value of a field as one would type it ("true", "false" for a FLAG); ""
 * when unset: no text, no choice, or a number without a default whose range
 * leaves out the 0 it holds. */
void pl_param_value_text(const pl_param *param, const void *target, char *text,
                         size_t room);

/* The flag of this name; NULL: none. */
const pl_param *pl_param_find(const pl_param_group *groups, size_t group_count,
                              const char *name);

/* What conditions (pl_param.needs) refer to besides the values of flags, and
 * how messages name it. */
typedef struct pl_param_fact {
    const char *name;  /* several may have one name: either will do */
    const char *value; /* NULL: not known yet */
} pl_param_fact;

typedef struct pl_param_term {
    const char *condition; /* "strategy=ps" */
    const char *label;     /* "a parameter server"; default: "--strategy ps" */
    const char *refusal;   /* what follows "--name " where the condition does
                              not hold; default: "needs " and the label */
} pl_param_term;

typedef struct pl_param_facts {
    const pl_param_fact *list; /* they override flags of the same name */
    size_t count;
    const pl_param_term *terms;
    size_t term_count;
    const pl_param_group *groups; /* whose values conditions may name */
    size_t group_count;
} pl_param_facts;

/* True when all conditions of the flag hold.  A condition on an unknown value
 * holds. */
bool pl_param_applies(const pl_param *param, const pl_param_facts *facts);

/* PL_USAGE for the first flag that was given and has no effect. */
pl_status pl_param_check(const pl_param_facts *facts) PL_MUST_CHECK;

/* The help of all groups: as terminal text, Markdown table (where facts may be
 * NULL), or troff.  Internal flags are left out. */
void pl_param_print_help(const pl_param_group *groups, size_t group_count,
                         FILE *file);
/* The same without flags that have no effect where these facts hold, and with
 * the values that the targets of the groups have as the model's defaults. */
void pl_param_print_help_where(const pl_param_group *groups, size_t group_count,
                               const pl_param_facts *facts, FILE *file);
/* The same for the flags that most people need (PL_PARAM_COMMON), or for all
 * where no row is marked so; returns how many flags it left out. */
size_t pl_param_print_common(const pl_param_group *groups, size_t group_count,
                             const pl_param_facts *facts, FILE *file);
/* One flag with its reason, default, range and conditions.  PL_USAGE, with the
 * nearest flag, when no flag has this name (a leading "--" is fine). */
pl_status pl_param_explain(const pl_param_group *groups, size_t group_count,
                           const pl_param_facts *facts, const char *name,
                           FILE *file) PL_MUST_CHECK;
void pl_param_print_markdown(const pl_param_group *groups, size_t group_count,
                             const pl_param_facts *facts, FILE *file);
void pl_param_print_troff(const pl_param_group *groups, size_t group_count,
                          FILE *file);

/* PL_USAGE: "unknown flag --bathc; did you mean --batch?" */
pl_status pl_param_unknown(const pl_param_group *groups, size_t group_count,
                           const char *flag) PL_MUST_CHECK;

/* The candidate (of a NULL-terminated list) nearest to `word` in edits, or
 * NULL when none is near enough to suggest. */
const char *pl_param_nearest(const char *word, const char *const *candidates);

/* "100", "1ep", ...: also used outside tables. */
pl_status pl_every_parse(pl_every *out, const char *text) PL_MUST_CHECK;

/* The arguments of a command that are not flags. */
typedef struct pl_words {
    char **list;
    int count;
} pl_words;

#endif
