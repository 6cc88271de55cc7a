#include "fuzz/fuzz.h"

#include "base/json/json.h"
#include "base/mem.h"
#include "job/cluster/cluster.h"

#include <string.h>

/* What was read must be written so that it reads back as the same. */
static void round_trip(const pl_cluster *cluster)
{
    pl_json *json, *again;
    pl_cluster read;
    if (pl_cluster_json(cluster, &json) != PL_OK ||
        pl_cluster_from_json(&read, json) != PL_OK ||
        pl_cluster_json(&read, &again) != PL_OK || !pl_json_equal(json, again))
        __builtin_trap();
    for (int32_t w = 0; w < read.workers; w++) {
        pl_task task = pl_cluster_task(&read, w);
        if (pl_cluster_check(&read, task) != PL_OK ||
            pl_cluster_worker(&read, task) != w)
            __builtin_trap();
    }
    pl_json_free(json);
    pl_json_free(again);
    pl_cluster_close(&read);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    char *text = pl_mem_alloc(bytes + 1, 1);
    pl_cluster cluster;
    pl_task task;
    pl_json *json;
    if (text == NULL)
        return 0;
    memcpy(text, data, bytes);
    if (pl_cluster_tf_config(&cluster, &task, text) == PL_OK) {
        if (pl_cluster_check(&cluster, task) != PL_OK)
            __builtin_trap();
        round_trip(&cluster);
        pl_cluster_close(&cluster);
    }
    if (pl_json_parse(&json, text, strlen(text), "input") == PL_OK) {
        if (pl_cluster_from_json(&cluster, json) == PL_OK) {
            round_trip(&cluster);
            pl_cluster_close(&cluster);
        }
        pl_json_free(json);
    }
    pl_mem_free(text);
    return 0;
}
