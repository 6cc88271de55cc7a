/* assets.h - the files that a report's page holds, embedded at build.
 *
 * Threads: any; they are constant. */
#ifndef PL_OBSERVE_REPORT_ASSETS_H
#define PL_OBSERVE_REPORT_ASSETS_H

#include <stddef.h>

typedef struct pl_asset {
    const char *data;
    size_t bytes;
} pl_asset;

pl_asset pl_asset_style(void);   /* page.css */
pl_asset pl_asset_figures(void); /* figures.js, drawings.js, execution.js: draw
                                    everything */
pl_asset pl_asset_script(void);  /* page.js: the other functions of a report's
                                    page */
pl_asset pl_asset_live(void);    /* live.js */

#endif
