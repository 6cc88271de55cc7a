foreach(noun address admission area decoder download endpoint frame handshake hostile http keys probe processes ring shared)
    pl_unit_test(net ${noun})
endforeach()
