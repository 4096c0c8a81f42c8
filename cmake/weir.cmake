# weir.cmake - flags for every target, and the words the rooms are built with.
#
#   weir_room(NAME rooms... [WITHOUT files...])
#                               a room: the library weir_NAME from the *.c of its folder
#   weir_backend(NAME SOURCES libraries...)
#                               a backend that libweir does not carry: libweir-NAME.a and .so
#   weir_program(NAME SOURCE rooms...)
#                               a program from the file with its main
#   weir_library(rooms...)      libweir.a and libweir.so from these rooms
#   weir_test(NAME rooms... [LONG nouns...] [SINGLE nouns...])
#                               one cmocka program NAME_<noun>_test per tests/NAME/<noun>_test.c. The
#                               SINGLE ones, or ALL, have one thread: they are slow under the thread
#                               sanitizer, which finds nothing in them, and left out of its build
#   weir_fuzz(rooms...)         the fuzz targets, or their replayers
#
# Programs for tests are not part of `all`: build the target `tests`, or one of them by its name.
include(CheckCCompilerFlag)
include(CheckCSourceCompiles)
include(CheckPIESupported)

set(WEIR_SANITIZE "" CACHE STRING "Sanitizers for everything: address,undefined or thread")
option(WEIR_FUZZ "Build the fuzz targets with libFuzzer (clang only)" OFF)

# Asserts stay on in every build type, so none of them defines NDEBUG.
if(NOT CMAKE_BUILD_TYPE)
    set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "" FORCE)
endif()
set(CMAKE_C_FLAGS_DEBUG "-O0 -g")
set(CMAKE_C_FLAGS_RELEASE "-O2 -g")
set(CMAKE_C_FLAGS_RELWITHDEBINFO "-O2 -g")

# POSIX is asked for here; a file that needs more defines _GNU_SOURCE itself.
set(CMAKE_C_STANDARD 11)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS OFF)
add_compile_definitions(_POSIX_C_SOURCE=200809L)
add_compile_options(-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wstrict-prototypes
                    -Wmissing-prototypes -Werror)

set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set_property(GLOBAL PROPERTY TARGET_MESSAGES OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
check_pie_supported(LANGUAGES C)

function(weir_flag_if_known FLAG NAME)
    check_c_compiler_flag(${FLAG} ${NAME})
    if(${NAME})
        add_compile_options(${FLAG})
    endif()
endfunction()
weir_flag_if_known(-fstack-protector-strong WEIR_HAS_STACK_PROTECTOR)
weir_flag_if_known(-fstack-clash-protection WEIR_HAS_STACK_CLASH)
weir_flag_if_known(-fcf-protection WEIR_HAS_CF_PROTECTION)
add_link_options(-Wl,-z,relro,-z,now)

if(WEIR_FUZZ)
    set(sanitize fuzzer-no-link,address,undefined)
else()
    set(sanitize ${WEIR_SANITIZE})
endif()
if(sanitize)
    # Half the time of -O2 -g to compile; reports still have their lines. What a text may hold at
    # most is not known here; the release build warns.
    set(CMAKE_C_FLAGS_RELWITHDEBINFO "-O1 -g1")
    add_compile_options(-fsanitize=${sanitize} -fno-sanitize-recover=all -fno-omit-frame-pointer
                        $<$<C_COMPILER_ID:GNU>:-Wno-format-truncation>)
    add_compile_definitions(WEIR_COUNT_STEPS) # src/base/steps.h
    add_link_options(-fsanitize=${sanitize})
    # Hundreds of tests are linked, and it takes this linker a quarter of the time.
    set(CMAKE_REQUIRED_LINK_OPTIONS -fuse-ld=gold)
    check_c_source_compiles("int main(void) { return 0; }" WEIR_HAS_GOLD)
    unset(CMAKE_REQUIRED_LINK_OPTIONS)
    if(WEIR_HAS_GOLD AND NOT WEIR_FUZZ)
        add_link_options(-fuse-ld=gold)
    endif()
else()
    # Old compilers know level 2 only; their headers answer 3 with a warning.
    set(CMAKE_REQUIRED_FLAGS "-O2 -Werror -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3")
    check_c_source_compiles("#include <stdio.h>\nint main(void) { return 0; }" WEIR_HAS_FORTIFY_3)
    unset(CMAKE_REQUIRED_FLAGS)
    set(level $<IF:$<BOOL:${WEIR_HAS_FORTIFY_3}>,3,2>)
    add_compile_options(-U_FORTIFY_SOURCE $<$<NOT:$<CONFIG:Debug>>:-D_FORTIFY_SOURCE=${level}>)
endif()

# Tests wait for the code that they call, not for their own: what counts is how soon they are compiled.
# Without optimisation the compiler takes what a call sets for what is never set, and does not know how
# long a text is.
if(sanitize)
    set(test_options -O0 $<$<C_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
elseif(CMAKE_BUILD_TYPE STREQUAL RelWithDebInfo)
    set(test_options -Og -g1 $<$<C_COMPILER_ID:GNU>:-Wno-format-truncation>)
endif()

find_package(Threads REQUIRED)
find_package(OpenSSL REQUIRED)
find_library(WEIR_CMOCKA cmocka)
if(WEIR_CMOCKA)
    add_custom_target(tests)
else()
    add_custom_target(tests COMMAND echo "cmocka is missing, run scripts/bootstrap test"
                            COMMAND false)
endif()

# Links rooms by their short names.
function(weir_link TARGET HOW)
    list(TRANSFORM ARGN PREPEND weir_ OUTPUT_VARIABLE rooms)
    target_link_libraries(${TARGET} ${HOW} ${rooms})
endfunction()

function(weir_room NAME)
    cmake_parse_arguments(PARSE_ARGV 1 with "" "" WITHOUT)
    file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.c)
    list(TRANSFORM with_WITHOUT PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/)
    list(REMOVE_ITEM sources ${with_WITHOUT})
    if(NOT sources) # a room that nobody lives in yet
        set(sources ${PROJECT_BINARY_DIR}/empty.c)
        file(CONFIGURE OUTPUT ${sources} CONTENT "extern const int weir__empty;\n")
    endif()
    add_library(weir_${NAME} STATIC ${sources})
    target_include_directories(weir_${NAME} PUBLIC ${PROJECT_SOURCE_DIR}/src
                                                   ${PROJECT_SOURCE_DIR}/include)
    target_link_libraries(weir_${NAME} PUBLIC Threads::Threads)
    weir_link(weir_${NAME} PUBLIC ${with_UNPARSED_ARGUMENTS})
endfunction()

# The archive needs libweir.a behind it; the shared library carries what it uses of it, unseen.
function(weir_backend NAME SOURCES)
    set(script ${PROJECT_SOURCE_DIR}/cmake/backend.map)

    add_library(weir_${NAME} STATIC ${SOURCES})
    add_library(weir_${NAME}_shared SHARED ${SOURCES})
    set_target_properties(weir_${NAME}_shared PROPERTIES VERSION ${PROJECT_VERSION}
                          SOVERSION ${PROJECT_VERSION_MAJOR} LINK_DEPENDS ${script})
    target_link_options(weir_${NAME}_shared PRIVATE -Wl,--version-script=${script},--as-needed)
    foreach(library weir_${NAME} weir_${NAME}_shared)
        set_target_properties(${library} PROPERTIES OUTPUT_NAME weir-${NAME}
                              ARCHIVE_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}
                              LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR})
    endforeach()
    target_link_libraries(weir_${NAME} PUBLIC weir_store ${ARGN})
    target_link_libraries(weir_${NAME}_shared PRIVATE weir_store ${ARGN})
    configure_file(${PROJECT_SOURCE_DIR}/cmake/weir-${NAME}.pc.in
                   ${PROJECT_BINARY_DIR}/weir-${NAME}.pc @ONLY)
    install(TARGETS weir_${NAME} weir_${NAME}_shared LIBRARY DESTINATION lib
            ARCHIVE DESTINATION lib)
    install(FILES ${PROJECT_BINARY_DIR}/weir-${NAME}.pc DESTINATION lib/pkgconfig)
endfunction()

function(weir_library)
    list(TRANSFORM ARGN REPLACE "(.+)" "$<TARGET_OBJECTS:weir_\\1>" OUTPUT_VARIABLE objects)
    set(script ${PROJECT_SOURCE_DIR}/cmake/libweir.map)

    add_library(libweir_static STATIC ${objects})
    add_library(libweir SHARED ${objects})
    set_target_properties(libweir PROPERTIES VERSION ${PROJECT_VERSION}
                          SOVERSION ${PROJECT_VERSION_MAJOR} LINK_DEPENDS ${script})
    target_link_options(libweir PRIVATE -Wl,--version-script=${script})
    if(NOT sanitize) # whose runtime is found only when a program is linked
        target_link_options(libweir PRIVATE -Wl,-z,defs)
    endif()
    foreach(library libweir_static libweir)
        set_target_properties(${library} PROPERTIES OUTPUT_NAME weir LINKER_LANGUAGE C
                              ARCHIVE_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}
                              LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR})
        target_include_directories(${library} INTERFACE ${PROJECT_SOURCE_DIR}/include)
        target_link_libraries(${library} PRIVATE Threads::Threads OpenSSL::SSL OpenSSL::Crypto
                                                 ${WEIR_UV} ${WEIR_WSLAY} ${WEIR_SQLITE})
    endforeach()

    configure_file(${PROJECT_SOURCE_DIR}/cmake/weir.pc.in ${PROJECT_BINARY_DIR}/weir.pc @ONLY)
    install(TARGETS libweir_static libweir LIBRARY DESTINATION lib ARCHIVE DESTINATION lib)
    install(FILES ${PROJECT_BINARY_DIR}/weir.pc DESTINATION lib/pkgconfig)
    install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/weir DESTINATION include)
endfunction()

function(weir_test NAME)
    cmake_parse_arguments(PARSE_ARGV 1 with "" "" "LONG;SINGLE")
    file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/${NAME}/*_test.c)
    if(NOT WEIR_CMOCKA)
        return()
    endif()
    foreach(source IN LISTS sources)
        get_filename_component(stem ${source} NAME_WE)
        string(REGEX REPLACE "_test$" "" noun ${stem})
        set(test ${NAME}_${stem})
        if(WEIR_SANITIZE STREQUAL thread AND (noun IN_LIST with_SINGLE OR with_SINGLE STREQUAL ALL))
            continue()
        endif()
        add_executable(${test} EXCLUDE_FROM_ALL ${source})
        target_compile_definitions(${test} PRIVATE WEIR_TESTS_DIR="${PROJECT_SOURCE_DIR}/tests")
        target_compile_options(${test} PRIVATE ${test_options})
        target_link_libraries(${test} PRIVATE ${WEIR_CMOCKA})
        weir_link(${test} PRIVATE ${with_UNPARSED_ARGUMENTS})
        add_test(NAME ${test} COMMAND ${test})
        set_tests_properties(${test} PROPERTIES LABELS ${NAME} TIMEOUT 600)
        if(noun IN_LIST with_LONG)
            set_tests_properties(${test} PROPERTIES LABELS "${NAME};long" TIMEOUT 1800)
        endif()
        add_dependencies(tests ${test})
    endforeach()
endfunction()

# The program NAME, left at the top of the build folder.
function(weir_program NAME SOURCE)
    add_executable(${NAME} ${SOURCE})
    set_target_properties(${NAME} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR})
    weir_link(${NAME} PRIVATE ${ARGN})
    install(TARGETS ${NAME} DESTINATION bin)
endfunction()

# Each fuzz/NAME_fuzz.c: with WEIR_FUZZ the libFuzzer program NAME_fuzz, otherwise NAME_replay, a
# test that feeds it every file of fuzz/corpus/NAME.
function(weir_fuzz)
    file(GLOB sources CONFIGURE_DEPENDS *_fuzz.c)
    foreach(source IN LISTS sources)
        get_filename_component(stem ${source} NAME_WE)
        string(REGEX REPLACE "_fuzz$" "" noun ${stem})
        if(WEIR_FUZZ)
            add_executable(${stem} ${source})
            target_link_options(${stem} PRIVATE -fsanitize=fuzzer)
            weir_link(${stem} PRIVATE ${ARGN})
            continue()
        endif()
        add_executable(${noun}_replay EXCLUDE_FROM_ALL ${source} replay.c)
        weir_link(${noun}_replay PRIVATE ${ARGN})
        add_test(NAME fuzz_${noun}_replay
                 COMMAND ${noun}_replay ${CMAKE_CURRENT_SOURCE_DIR}/corpus/${noun})
        set_tests_properties(fuzz_${noun}_replay PROPERTIES LABELS fuzz TIMEOUT 600)
        add_dependencies(tests ${noun}_replay)
    endforeach()
endfunction()
