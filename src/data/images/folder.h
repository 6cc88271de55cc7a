/* folder.h - the image files of a folder: one subfolder per class.
 *
 *   DIR/cat/1.png, DIR/dog/2.jpg              classes cat and dog
 *   DIR/train/cat/1.png, DIR/test/cat/7.png   the same in two splits
 *   DIR/1.png                                 not labelled
 *   1.png                                     one image
 *
 * Threads: any; a list may be read by all once made. */
#ifndef PL_DATA_IMAGES_FOLDER_H
#define PL_DATA_IMAGES_FOLDER_H

#include "data/source.h"

typedef struct pl_image_file {
    char *name;    /* relative to the folder: "cat/1.png" */
    int32_t class; /* -1: none */
} pl_image_file;

typedef struct pl_image_list {
    char *folder; /* of the files: DIR, or its folder of a split */
    pl_image_file *files;
    size_t count, room;
    char **classes; /* names, sorted */
    size_t class_count;
} pl_image_list;

/* The files of a split, in the order of their names. */
pl_status pl_image_list_init(pl_image_list *list, const char *folder,
                             pl_split split,
                             const pl_source_opts *opts) PL_MUST_CHECK;
void pl_image_list_close(pl_image_list *list); /* a zeroed one is fine */

#endif
