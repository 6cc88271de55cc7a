foreach(noun conv dnn dropout elementwise lanes matmul optim rows sparse)
    pl_unit_test(kernels ${noun})
    target_link_libraries(test_kernels_${noun} PRIVATE m)
endforeach()
