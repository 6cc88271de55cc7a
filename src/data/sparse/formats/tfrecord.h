/* tfrecord.h - names of the features of an example in a TFRecord file.
 *
 * Threads: constants only. */
#ifndef PL_DATA_SPARSE_FORMATS_TFRECORD_H
#define PL_DATA_SPARSE_FORMATS_TFRECORD_H

/* The defaults of --label-feature and similar flags. */
#define PL_TFRECORD_LABEL "label"
#define PL_TFRECORD_INDEX "index"
#define PL_TFRECORD_VALUE "value"

#endif
