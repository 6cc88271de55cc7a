pl_unit_test(cli predictor)
target_link_libraries(test_cli_predictor PRIVATE m)
