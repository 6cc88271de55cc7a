foreach(noun address area download endpoint frame http keys probe processes ring shared)
    pl_unit_test(net ${noun})
endforeach()
