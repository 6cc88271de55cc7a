pl_unit_test(net frame)
pl_unit_test(net area)
pl_unit_test(net endpoint)
