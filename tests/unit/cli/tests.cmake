pl_unit_test(cli part)
pl_unit_test(cli predictor)
target_link_libraries(test_cli_predictor PRIVATE m)
