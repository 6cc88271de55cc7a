foreach(noun alexnet init model)
    pl_unit_test(nn ${noun})
    target_link_libraries(test_nn_${noun} PRIVATE m)
endforeach()
