pl_unit_test(proto tf_example)
