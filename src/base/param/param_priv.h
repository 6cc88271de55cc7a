/* param_priv.h - what parsing and printing of parameters share. */
#ifndef PL_BASE_PARAM_PARAM_PRIV_H
#define PL_BASE_PARAM_PARAM_PRIV_H

#include "base/param/param.h"

#define PL_PARAM_NUMBER_BYTES 32

/* Set the field to its value without a default. */
void pl_param_clear(const pl_param *param, void *target);

/* The shortest text that reads back as `value`. */
void pl_param_real_text(double value, char text[PL_PARAM_NUMBER_BYTES]);

/* "from 1 to 100", "of at least 1", "of at most 9"; "" without a limit. */
void pl_param_range_text(const pl_param *param, char *text, size_t room);

/* The index-th of "mean|sum" and its length; NULL past the last. */
const char *pl_param_choice_at(const char *choices, int index, int *length);

/* "mean, sum or max" of "mean|sum|max" */
void pl_param_choices_text(const char *choices, char *text, size_t room);

/* The name of the value in the help; "" for a flag without one. */
const char *pl_param_value_name(const pl_param *param);

/* The default as one would type it, "the model's" where that is not known, or
 * "" when there is none or the help states it.  `target` may be NULL.  Points
 * to a constant or into `text`. */
const char *pl_param_default_text(const pl_param *param, const void *target,
                                  char *text, size_t room);

/* Print words from `at` (where the cursor stands) on, breaking lines that
 * would pass 80 columns and continuing at `column`. */
void pl_param_print_wrapped(FILE *file, const char *text, int at, int column);

/* "a parameter server, --mode ssp": what the flag needs; "" for nothing. */
void pl_param_needs_text(const pl_param *param, const pl_param_facts *facts,
                         char *text, size_t room);

#endif
