#!/bin/sh
# install.sh SOURCE BUILD COMPILER: install BUILD into a fresh folder, then
# build examples/two_layer.c against what is there, with pkg-config and with
# CMake, and train with both.
set -eu
source=$1 build=$2 compiler=$3
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

fail() {
    echo "install: $*" >&2
    exit 1
}

# Run quietly; when it fails, show what it said.
quietly() {
    "$@" >"$folder/log" 2>&1 || {
        cat "$folder/log"
        fail "failed: $*"
    }
}

quietly env DESTDIR="$folder/stage" cmake --install "$build" \
    --prefix /opt/paceline
# What was installed may be moved.
root=$folder/moved
mv "$folder/stage/opt/paceline" "$root"

for file in bin/paceline include/paceline.h include/paceline/nn.h \
    share/man/man1/paceline.1; do
    [ -f "$root/$file" ] || fail "$file is missing"
done
[ -n "$(find "$root" -name libpaceline.so.0)" ] ||
    fail "the shared library is missing"
for path in "$source" "$build" "$folder"; do
    ! grep -rlF -e "$path" "$root" || fail "the files above hold $path"
done
quietly "$root/bin/paceline" --version

PKG_CONFIG_PATH=$(dirname "$(find "$root" -name paceline.pc)")
export PKG_CONFIG_PATH
mkdir "$folder/work"
cd "$folder/work"
cp "$source/examples/two_layer.c" .
[ "$(pkg-config --modversion paceline)" = \
    "$("$root/bin/paceline" --version | awk 'NR == 1 { print $2 }')" ] ||
    fail "pkg-config and the program differ in their version"
# Word splitting is wanted: one argument a flag.
# shellcheck disable=SC2046
quietly "$compiler" -o by_pkg_config two_layer.c \
    $(pkg-config --cflags --libs --static paceline)

cat >CMakeLists.txt <<'END'
cmake_minimum_required(VERSION 3.25)
project(mine LANGUAGES C)
find_package(paceline REQUIRED)
add_executable(by_cmake two_layer.c)
target_link_libraries(by_cmake PRIVATE paceline::paceline)
END
quietly cmake -S . -B made -DCMAKE_C_COMPILER="$compiler" \
    -DCMAKE_PREFIX_PATH="$root"
quietly cmake --build made

for program in ./by_pkg_config made/by_cmake; do
    quietly "$program" train two_layer --data synthetic --examples 500 \
        --steps 5 --quiet --json
    grep -q '"stopped_by":"steps"' "$folder/log" ||
        fail "$program: $(cat "$folder/log")"
    [ -f "$root/lib/paceline/paceline-mpi.so" ] || continue
    command -v mpirun >/dev/null || continue
    # The module is found where the library was installed ...
    rm -rf mpi
    quietly "$program" train two_layer --data synthetic --examples 500 \
        --steps 5 --quiet --json --workers 2 --run mpi
    grep -q '"engine": "mpi"' mpi/run.json ||
        fail "$program does not find the MPI module: $(cat mpi/run.json)"
    # ... and where it is not there, the ring does.
    mv "$root/lib/paceline" "$root/lib/hidden"
    rm -rf ring
    quietly "$program" train two_layer --data synthetic --examples 500 \
        --steps 5 --quiet --json --workers 2 --run ring
    grep -q '"engine": "ring"' ring/run.json ||
        fail "$program does not fall back to the ring: $(cat ring/run.json)"
    ! "$program" train two_layer --data synthetic --steps 5 --workers 2 \
        --engine mpi >"$folder/log" 2>&1 || fail "there was no MPI module"
    ! grep -q "restarting it" "$folder/log" ||
        fail "$program tries again what cannot change: $(cat "$folder/log")"
    mv "$root/lib/hidden" "$root/lib/paceline"
done

# A program whose main does not pass its arguments on cannot train in several
# processes, and says so: one that forgets them would start itself without end,
# one that does not call pl_app_main would end well without training.
for main in 'char *mine[] = { "mine", "train", "softmax", "--data", "synthetic", "--workers", "2", "--ps", "1", "--steps", "5", NULL }; return pl_app_main(11, mine, NULL);' \
    'return argc > 11 ? 0 : pl_app_main(argc, argv, NULL);'; do
    printf '#include <paceline.h>\nint main(int argc, char **argv) { (void)argc; (void)argv; %s }\n' \
        "$main" >mine.c
    # shellcheck disable=SC2046
    quietly "$compiler" -o mine mine.c \
        $(pkg-config --cflags --libs --static paceline)
    ! ./mine train softmax --data synthetic --workers 2 --ps 1 --steps 5 \
        >"$folder/log" 2>&1 || fail "mine trained: $(cat "$folder/log")"
    grep -q "pl_app_main" "$folder/log" ||
        fail "mine does not say why: $(cat "$folder/log")"
done
