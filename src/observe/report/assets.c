/* The assembler embeds the files unchanged; the build defines their names as
 * PL_ASSET_... */
#include "observe/report/assets.h"

#define EMBED(name, file)                                                      \
    __asm__(".pushsection .rodata\n" #name "_begin:\n.incbin \"" file          \
            "\"\n" #name "_end:\n.popsection\n");                              \
    extern const char name##_begin[], name##_end[]

EMBED(asset_style, PL_ASSET_STYLE);
EMBED(asset_script, PL_ASSET_SCRIPT);
EMBED(asset_live, PL_ASSET_LIVE);
EMBED(asset_figures, PL_ASSET_FIGURES "\"\n.incbin \"" PL_ASSET_DRAWINGS
                                      "\"\n.incbin \"" PL_ASSET_EXECUTION);

pl_asset pl_asset_style(void)
{
    return (pl_asset) { asset_style_begin,
                        (size_t)(asset_style_end - asset_style_begin) };
}

pl_asset pl_asset_script(void)
{
    return (pl_asset) { asset_script_begin,
                        (size_t)(asset_script_end - asset_script_begin) };
}

pl_asset pl_asset_live(void)
{
    return (pl_asset) { asset_live_begin,
                        (size_t)(asset_live_end - asset_live_begin) };
}

pl_asset pl_asset_figures(void)
{
    return (pl_asset) { asset_figures_begin,
                        (size_t)(asset_figures_end - asset_figures_begin) };
}
