# What goes into a Python wheel: the shared library and the program, beside the
# package's modules.  A wheel holds no links, so the library has one name.
set_target_properties(paceline_shared PROPERTIES VERSION 0)
install(TARGETS paceline_shared LIBRARY NAMELINK_SKIP
        DESTINATION paceline/_lib COMPONENT python)
install(TARGETS paceline RUNTIME DESTINATION paceline/_lib COMPONENT python)
