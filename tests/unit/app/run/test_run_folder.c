/* What a run folder keeps of the files that its job began from. */
#include "app/run/run_folder.h"

#include "base/file/file.h"
#include "nn/onnx/onnx_model.h"
#include "support/folder.h"

#include <unistd.h>

static pl_status record(const char *folder, const pl_model *model)
{
    pl_options options;
    PL_TRY(pl_options_init(&options, model));
    pl_run_folder run = { .path = (char *)folder };
    const pl_job job = { .options = &options,
                         .example = PL_SHAPE(28, 28),
                         .classes = 10,
                         .kernels = pl_kernels_best() };
    pl_status status = pl_run_folder_record(&run, &job);
    pl_options_close(&options);
    return status;
}

/* A run would otherwise keep another model than the one it trained. */
static void run_folder_keeps_the_model_that_was_read(void **state)
{
    const char *given = test_path(*state, "given.onnx");
    const char *kept = test_path(*state, PL_MODEL_FILE);
    pl_map map;
    pl_onnx_net *net;
    assert_ok(pl_map_read(&map, PL_GOLDEN "/onnx/torch_mlp.onnx", SIZE_MAX));
    assert_ok(pl_file_replace(given, map.data, map.bytes));
    assert_ok(pl_onnx_net_new(&net, &(pl_onnx_net_opts) { .path = given }));
    assert_ok(record(*state, pl_onnx_net_model(net)));
    pl_map copy;
    assert_ok(pl_map_read(&copy, kept, SIZE_MAX));
    assert_int_equal(map.bytes, copy.bytes);
    assert_memory_equal(map.data, copy.data, map.bytes);
    pl_map_close(&copy);

    assert_ok(pl_file_remove_all(kept));
    assert_int_equal(0, truncate(given, 100));
    assert_fails(PL_IO, "given.onnx changed after it was read",
                 record(*state, pl_onnx_net_model(net)));
    assert_false(pl_file_exists(kept));
    pl_onnx_net_free(net);
    pl_map_close(&map);
    assert_int_equal(0, pl_mem_live());
}

UNIT_TESTS(TEST_IN_FOLDER(run_folder_keeps_the_model_that_was_read))
