/* confusion.h - confusion.json, the answers of a classifier in its last test: a
 * struct and its field table.
 *
 * train counts, app writes the file beside summary.json, observe reads it.
 * Models of more than PL_CONFUSION_CLASSES classes have none.
 *
 * Threads: none of its own. */
#ifndef PL_BASE_RECORD_CONFUSION_H
#define PL_BASE_RECORD_CONFUSION_H

#include "base/json/fields.h"

#define PL_CONFUSION_CLASSES  100
#define PL_CONFUSION_EXAMPLES 16 /* misclassified ones that are kept */
#define PL_CONFUSION_SIDE     64 /* pixels of a kept image, at most */

typedef struct pl_confusion_cell {
    int64_t examples;
} pl_confusion_cell;
extern const pl_fields pl_confusion_cell_fields;

typedef struct pl_misclassified {
    int64_t index; /* in the test set, from 0 */
    int32_t label, predicted;
    double probability; /* that the model gave to its answer */
    char *pixels;       /* base64 of [channels, height, width] bytes; NULL: the
                           example is not an image */
} pl_misclassified;

typedef struct pl_confusion {
    int64_t step;
    int32_t classes;                 /* 0: nothing was counted */
    pl_confusion_cell *counts;       /* [label, predicted] */
    size_t count_count;              /* classes * classes */
    int32_t width, height, channels; /* of the images; 0: there are none */
    pl_misclassified *wrong;         /* the most probable answers first */
    size_t wrong_count;
} pl_confusion;
extern const pl_fields pl_confusion_fields;

/* Read <folder>/confusion.json.  PL_NOTFOUND when the run has none.  Counts,
 * classes and images are then consistent. */
pl_status pl_confusion_read(pl_confusion *out,
                            const char *folder) PL_MUST_CHECK;
void pl_confusion_close(pl_confusion *confusion); /* a zeroed one is fine */

/* One class against all others; NAN where there is nothing to divide by. */
typedef struct pl_class_result {
    int32_t index;
    int64_t examples;  /* of this class */
    int64_t predicted; /* answers that name this class */
    double precision, recall, f1;
    int32_t taken_for; /* the class it is most often mistaken for; -1: none */
    int64_t taken;     /* how many times */
} pl_class_result;
extern const pl_fields pl_class_result_fields;

pl_class_result pl_confusion_class(const pl_confusion *confusion,
                                   int32_t index);

#endif
