pl_unit_test(tensor params)
pl_unit_test(tensor shape)
pl_unit_test(tensor tensor)
