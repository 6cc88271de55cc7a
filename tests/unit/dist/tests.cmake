pl_unit_test(dist cluster)
pl_unit_test(dist control)
