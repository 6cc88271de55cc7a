/* duration.h - spans of time as people read them: "4:05", "26:00:09". */
#ifndef PL_BASE_TEXT_DURATION_H
#define PL_BASE_TEXT_DURATION_H

#define PL_DURATION 32

/* Minutes and seconds, with hours from one hour on; returns `text`.  What is
 * negative or not a number counts as 0, at most 1e9 s are told. */
const char *pl_duration_text(double seconds, char text[PL_DURATION]);

#endif
