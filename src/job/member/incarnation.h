/* incarnation.h - a number that distinguishes two processes of one task.
 *
 * Threads: any. */
#ifndef PL_JOB_MEMBER_INCARNATION_H
#define PL_JOB_MEMBER_INCARNATION_H

#include <stdint.h>

/* From calendar time and process number; never 0. */
uint32_t pl_incarnation_draw(void);

#endif
