/* published.h - published results for the cells of a sweep.
 *
 * An entry is {"at": "file:7", "result": "test_accuracy", "machine": false,
 * "where": {flag: value}, "values": ["92.12%", "?"]}: one value for each cell
 * of the grids that has the flags of `where`, in the order of the cells.
 *
 * Threads: one. */
#ifndef PL_APP_SWEEP_PUBLISHED_H
#define PL_APP_SWEEP_PUBLISHED_H

#include "base/json/json.h"

/* Make an entry from the words of a line, RESULT [machine] [FLAG=VALUE...]
 * VALUE...; `at` is its place.  PL_USAGE has the expected form. */
pl_status pl_published_read(pl_json **out, const pl_json *words,
                            const char *at) PL_MUST_CHECK;

/* Assigns the values of a spec to its cells in order. */
typedef struct pl_publisher {
    const pl_json *entries; /* the spec's; NULL: none */
    size_t *used;           /* values of each entry that have been assigned */
} pl_publisher;

pl_status pl_publisher_init(pl_publisher *publisher,
                            const pl_json *spec) PL_MUST_CHECK;
void pl_publisher_close(pl_publisher *publisher); /* a zeroed one is fine */

/* Set "published": {result: number} in the cell with these values of the grid;
 * nothing if no value is known.  Repetitions, which follow the first run of a
 * cell, get the same values. */
pl_status pl_publisher_deal(pl_publisher *publisher, const pl_json *values,
                            bool repetition, pl_json *cell) PL_MUST_CHECK;
/* PL_USAGE when the numbers of cells and values differ. */
pl_status pl_publisher_finish(const pl_publisher *publisher) PL_MUST_CHECK;

/* The results of the spec whose values depend on the machine, as an array that
 * the caller frees. */
pl_status pl_published_machine(pl_json **out,
                               const pl_json *spec) PL_MUST_CHECK;

#endif
