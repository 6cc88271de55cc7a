# make build      the program and the library, in build/
# make run        build the program, then train the smallest model on the built-in digits
# make install    build, then copy to PREFIX (/usr/local), below DESTDIR
# make test       what must pass before a change lands (minutes); as root also
#                 jobs that are disturbed in network namespaces
# make test-long  race detector, clang, clang-tidy, fuzzing, slow tests
# make deb        the Debian packages, in build-deb/, looked over by lintian
# make test-release  the packages in a fresh Debian (as root; minutes)
# make bench      build, then measure; bench-peers compares with other systems (hours)
# make format     clang-format over all C files
# make clean      remove all build folders
MAKEFLAGS += --no-print-directory
JOBS := $(shell nproc)
FUZZ_SECONDS ?= 6
PREFIX ?= /usr/local
# Many tests wait for processes rather than compute.
CTEST := ctest --output-on-failure -j $(shell expr $(JOBS) + 1)
# gcc's race detector wants the memory layout of a kernel without much address
# randomization; where it may not be switched off, run as it is.
UNRANDOMIZED := $(shell setarch -R true 2>/dev/null && echo setarch -R)
# Too large an allocation is an answer (NULL) the library handles.
SANITIZED := ASAN_OPTIONS=allocator_may_return_null=1 \
	UBSAN_OPTIONS=print_stacktrace=1
C_FILES = $(shell find src include tests bench examples -name '*.[ch]')

.PHONY: build run install test test-long bench bench-peers format clean
.PHONY: deb test-release
.PHONY: setup-build setup-test setup-long setup-release asan tsan clang tidy fuzz slow

build: setup-build
	@$(call build_preset,release,-DPL_TESTS=OFF)

# The program alone: benchmarks and examples take a while to build.
run: setup-build
	@$(call build_preset,release,-DPL_TESTS=OFF) --target paceline
	build/paceline train softmax --workers 2 --ps 1

install: build
	DESTDIR='$(DESTDIR)' cmake --install build --prefix '$(PREFIX)'

test: setup-test
	@$(call build_preset,release)
	$(CTEST) --test-dir build -LE slow
	@$(MAKE) asan

test-long: setup-long
	@$(call build_preset,release)
	@$(MAKE) tsan
	@$(MAKE) clang
	@$(MAKE) tidy
	@$(MAKE) fuzz
	@$(MAKE) slow

deb: setup-release
	@tools/make_deb.sh

test-release: deb
	tests/release/test_packages.sh build-deb

bench: build
	build/paceline-bench --commit "$$(git describe --always --dirty)"

bench-peers: build
	python3 bench/peers/all.py

format:
	clang-format -i $(C_FILES)

clean:
	rm -rf build build-asan build-tsan build-clang build-fuzz build-ci build-deb

# The parts of test and test-long; they expect that setup-test was made.

asan:
	@$(call build_preset,asan)
	$(SANITIZED) $(CTEST) --test-dir build-asan -LE 'slow|check|fault'

tsan:
	@$(call build_preset,tsan)
	TSAN_OPTIONS=allocator_may_return_null=1 $(UNRANDOMIZED) $(CTEST) --test-dir build-tsan -L unit -LE slow

clang:
	@$(call build_preset,clang)
	$(CTEST) --test-dir build-clang -L unit

tidy:
	tools/tidy.sh build-clang

fuzz:
	@$(call build_preset,fuzz) --target fuzz
	$(SANITIZED) tools/fuzz.sh build-fuzz $(FUZZ_SECONDS)

slow:
	$(CTEST) --test-dir build -L slow --no-tests=ignore

setup-build:
	@tools/setup.sh build

setup-test:
	@tools/setup.sh test

setup-long:
	@tools/setup.sh long

setup-release:
	@tools/setup.sh release

# Tests need more packages than the program, so `build` leaves them out.
# cmake --preset takes a fraction of a second when nothing changed.
build_preset = cmake --preset $(1) $(or $(2),-DPL_TESTS=ON) --log-level=WARNING >/dev/null && \
	cmake --build $(call folder,$(1))
folder = $(if $(filter release,$(1)),build,build-$(1))
