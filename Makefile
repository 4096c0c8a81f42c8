# The words people type. What they mean is in CMakeLists.txt and scripts/.
PREFIX ?= /usr/local
JOBS ?= $(shell nproc)
MAKEFLAGS += --no-print-directory
export JOBS

all:
	@scripts/bootstrap build
	@test -f build/Makefile || cmake -S . -B build
	@cmake --build build -j$(JOBS)

run: all
	@scripts/run

test show lint:
	@scripts/bootstrap $@
	@scripts/$@

fuzz soak:
	@scripts/bootstrap $@
	@scripts/$@ $(TIME)

format:
	@scripts/bootstrap lint
	@scripts/format

bench: all
	@build/weir bench log

install: all
	@cmake --install build --prefix $(PREFIX)

clean:
	@rm -rf build

.PHONY: all run test show soak fuzz lint format bench install clean
