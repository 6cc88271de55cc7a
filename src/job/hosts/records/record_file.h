/* record_file.h - which files of a run folder are records, sent from the host
 * that wrote them to the launcher's run folder.
 *
 *   run.json, summary.json               whole
 *   timeline.jsonl                       lines, of all hosts in one file
 *   events/<task>/<file>                 grows
 *   resources/<host>.csv                 grows
 *   trace/<task>.json                    whole
 *   checkpoints/<step>/<file>            whole; the manifest last
 *
 * Logs are not records: the launcher writes them from the output of tasks.
 *
 * Threads: any. */
#ifndef PL_JOB_HOSTS_RECORDS_RECORD_FILE_H
#define PL_JOB_HOSTS_RECORDS_RECORD_FILE_H

#include <stdbool.h>
#include <stddef.h>

#define PL_RECORD_PATH_MOST  512             /* bytes of a path, with the NUL */
#define PL_RECORD_CHUNK      ((size_t)49152) /* bytes of a file in a message */
#define PL_RECORD_FILES_MOST 65536           /* of one host */

#define PL_RECORD_CHECKPOINTS "checkpoints"
#define PL_RECORD_MANIFEST    "manifest.json"

typedef enum pl_record_kind {
    PL_RECORD_NONE,  /* not a record: neither sent nor accepted */
    PL_RECORD_GROWS, /* one task appends to it */
    PL_RECORD_LINES, /* several tasks append lines to it */
    PL_RECORD_WHOLE, /* it is complete once it has its name */
} pl_record_kind;

/* The kind of a path below the run folder, as sent by a peer: only paths listed
 * above, whose names have no leading dot, are records. */
pl_record_kind pl_record_kind_of(const char *path);

/* "checkpoints/<step>": a checkpoint's folder, which may be removed. */
bool pl_record_is_checkpoint(const char *path);

/* The folders of records and the depth of their files. */
typedef struct pl_record_folder {
    const char *name; /* NULL: ends the list */
    int depth;        /* 1: in it, 2: in folders in it */
    const char *end;  /* suffix of the names; "": any */
    pl_record_kind kind;
} pl_record_folder;
extern const pl_record_folder pl_record_folders[];
/* Files of the run folder itself; NULL ends the list. */
extern const char *const pl_record_files[];

#endif
