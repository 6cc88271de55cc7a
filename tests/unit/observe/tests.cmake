pl_unit_test(observe chrome_trace)
