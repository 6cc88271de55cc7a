# cmake -DPROGRAM=paceline -DOUT=folder -P documents.cmake: write the manual
# pages and the completion scripts, which the program prints from its tables.
function(write_document file)
    execute_process(COMMAND ${PROGRAM} docs ${ARGN} OUTPUT_FILE ${OUT}/${file}
                    COMMAND_ERROR_IS_FATAL ANY)
endfunction()

file(REMOVE_RECURSE ${OUT})
file(MAKE_DIRECTORY ${OUT}/man1 ${OUT}/bash ${OUT}/zsh)
execute_process(COMMAND ${PROGRAM} docs commands OUTPUT_VARIABLE commands
                COMMAND_ERROR_IS_FATAL ANY)
string(REGEX MATCHALL "[a-z]+" commands "${commands}")
foreach(command ${commands})
    write_document(man1/paceline-${command}.1 man ${command})
endforeach()
write_document(man1/paceline.1 man)
write_document(bash/paceline bash)
write_document(zsh/_paceline zsh)
file(TOUCH ${OUT}/done)
