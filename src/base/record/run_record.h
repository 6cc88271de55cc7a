/* run_record.h - run.json, the configuration of a run: a struct and its field
 * table.
 *
 * app writes it at the start of a run, observe and a resume read it.
 *
 * Threads: none of its own. */
#ifndef PL_BASE_RECORD_RUN_RECORD_H
#define PL_BASE_RECORD_RUN_RECORD_H

#include "base/json/fields.h"

#define PL_RUN_FORMAT    1 /* of run.json */
#define PL_RUN_SIZES_MAX 16

typedef struct pl_run_size {
    int64_t size;
} pl_run_size;

typedef struct pl_run_machine {
    const char *host, *kernels;
    int32_t cores; /* -1: not known */
} pl_run_machine;

typedef struct pl_run_record {
    int64_t format;
    const char *paceline; /* the version; texts are NULL where not known */
    const char *model;
    const char *started;  /* "2026-11-15T04:15:02Z" */
    uint64_t job;         /* drawn at random; 0: not known */
    const pl_json *args;  /* flags by name, as texts */
    pl_run_size *example; /* sizes of an example */
    size_t example_rank;  /* 0: not known */
    int64_t numbering;    /* of sparse ids; 0: unchanged */
    const pl_json *input; /* how to read other data, from training; NULL:
                             nothing */
    int32_t classes;      /* 0: not known */
    int64_t end_step;     /* at which it ends; 0: not known */
    bool has_machine;
    pl_run_machine machine;

    pl_json *own_json; /* of a record that was read: holds the texts */
} pl_run_record;
extern const pl_fields pl_run_record_fields;

/* Read <folder>/run.json.  PL_UNSUPPORTED when a newer version wrote it. */
pl_status pl_run_record_read(pl_run_record *out,
                             const char *folder) PL_MUST_CHECK;
void pl_run_record_close(pl_run_record *run); /* a zeroed one is fine */

#endif
