pl_unit_test(proto event)
target_compile_definitions(test_proto_event PRIVATE
                           PL_GOLDEN="${PROJECT_SOURCE_DIR}/tests/golden")
set_tests_properties(unit.proto.event PROPERTIES LABELS "unit;golden")
pl_unit_test(proto tf_example)
