pl_unit_test(proto tf_example)
pl_unit_test(proto wire)
