pl_unit_test(dist cluster)
