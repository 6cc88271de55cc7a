/* duration.h - spans of time as people read them: "4:05", "26:00:09". */
#ifndef PL_BASE_TEXT_DURATION_H
#define PL_BASE_TEXT_DURATION_H

#define PL_DURATION 32

/* Minutes and seconds, with hours from one hour on; returns `text`.  Negative
 * values and NAN count as 0, more than 1e9 s as 1e9 s. */
const char *pl_duration_text(double seconds, char text[PL_DURATION]);

#endif
