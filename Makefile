# Every target makes the environment it needs, with python3 >= 3.11: .venv, from pyproject.toml; `docs` and `runtime` need
# less, and make their own ones in build/env.
# PyTorch is among the test requirements; its small CPU build is taken where pip is pointed to it:
#   PIP_EXTRA_INDEX_URL=https://download.pytorch.org/whl/cpu make test

PYTHON ?= python3
BIN := .venv/bin
# Files in the order of their folders: what takes longest, decisions, is not what is begun last.
WORKERS := -n 2 --dist loadfile --no-loadscope-reorder
READY := .venv/.ready
DOCS := build/env/docs
PACKAGING := build/env/packaging
LAYERS := interpreter shim pocl oclgrind nvrtc sass
# The tests of a layer are marked; they are in these folders.
LAYERED := tests/conformance/test_grids.py tests/conformance/test_card_kernels.py \
  tests/unit/loop tests/unit/runtime tests/unit/schedule/test_random_traces.py
MAKEFLAGS += --no-print-directory
# Tests start hundreds of processes: without bytecode each of them would compile the package again.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help demo test test-target test-device test-arm arm-root devices check fmt drill mutants golden bench docs runtime system clean

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(READY)  ## tune a small network, compare it with ONNX Runtime (under 10 minutes)
	$(BIN)/tensorwright demo

test: $(READY)  ## run all tests, and the examples in docstrings and pages; OPTIONS=... for pytest
	$(BIN)/python -m pytest -q $(WORKERS) --durations=20 $(OPTIONS)

test-target: $(READY)  ## run the tests that run code of one target, for AVX2
	TENSORWRIGHT_TARGET=x86-64-avx2 $(BIN)/python -m pytest -q $(WORKERS) -m target tests/unit/runtime tests/unit/tuning

test-device: $(READY)  ## run the tests of code for graphics processors: all layers, or LAYER=interpreter ...
	@for layer in $(or $(LAYER),$(LAYERS)); do echo "layer $$layer"; \
	  $(BIN)/python -m pytest -q -rs -m "" --layer $$layer $(LAYERED) || exit 1; done

arm-root: $(READY)  ## make a Debian for arm64 with this package, for `make test-arm` (root, 4 minutes, 0.9 GB)
	$(BIN)/python benchmarks/correctness/arm64.py root

test-arm: $(READY)  ## run programs, a farm and the conformance suite on emulated ARM; SAMPLE=1: a small part of it
ifdef SAMPLE
	$(BIN)/python benchmarks/correctness/arm64.py suite
else
	$(BIN)/python benchmarks/correctness/arm64.py check
	$(BIN)/python benchmarks/correctness/arm64.py farm
	$(BIN)/python benchmarks/correctness/arm64.py suite --whole
endif

devices: $(READY)  ## install what tests of graphics processors run with: PoCL, NVRTC, Oclgrind, nvdisasm (200 MB)
	$(BIN)/python -m pip install --quiet -e '.[opencl,pocl,cuda,cards]'

check: $(READY)  ## lint, formatting, types, order of the folders, words
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m pytest -q tests/unit/test_layers.py tests/unit/test_words.py

fmt: $(READY)  ## format the code and mend what lint can mend
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

mutants: $(READY)  ## make wrong changes in a copy and see that tests catch them; ONLY=pattern, SAMPLE=n SEED=s
	$(BIN)/python tests/mutants/run.py $(if $(ONLY),--only '$(ONLY)') $(if $(SAMPLE),--sample $(SAMPLE) --seed $(or $(SEED),0))

drill: $(READY)  ## run all drills, and all tests that draw, with new seeds, for MINUTES=30; one table
	$(BIN)/python benchmarks/correctness/drill.py --minutes $(or $(MINUTES),30)

golden: $(READY)  ## rewrite the golden files; review the diff
	$(BIN)/python -m pytest -q tests --golden-update

bench: $(READY)  ## measure kernels, networks of light and wild, random workloads; PRECISION=int8 or bf16: networks in that
ifdef PRECISION
	$(BIN)/python benchmarks/short_numbers.py $(PRECISION)
else
	$(BIN)/python benchmarks/kernels/hand_schedules.py
	$(BIN)/tensorwright bench models --suite light --suite wild --untuned --check
	$(BIN)/tensorwright bench random --count 200 --check
endif

docs: $(DOCS)/.ready  ## build the site: pages, reference, search, all of it as Markdown too (build/docs/html)
	$(DOCS)/bin/python docs/site/build.py build/docs

runtime: $(PACKAGING)/.ready  ## build the package that runs executables alone into dist, and print its size
	$(PACKAGING)/bin/python -m pip wheel --quiet --no-deps --wheel-dir dist ./runtime
	@du -h dist/tensorwright_runtime-*.whl

system:  ## install libgomp, the one system library needed, where it is missing
	@sh .ci/libgomp

clean:  ## remove the environment and everything generated
	rm -rf .venv build dist runtime/build .mypy_cache .pytest_cache .ruff_cache .hypothesis

# $(call venv,FOLDER): an empty environment there, if there is none
define venv
@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
  || { echo "Python 3.11 or newer is needed: make PYTHON=python3.12 ..."; exit 1; }
@test -x $(1)/bin/python || $(PYTHON) -m venv $(1) \
  || { rm -rf $(1); echo "could not create $(1) (on Debian: apt-get install python3-venv)"; exit 1; }
endef

$(READY): pyproject.toml lab/pyproject.toml
	$(call venv,.venv)
	@$(MAKE) system
	$(BIN)/python -m pip install --quiet -e '.[test,demo]' -e lab
	@touch $@

$(DOCS)/.ready: pyproject.toml
	$(call venv,$(DOCS))
	@$(MAKE) system
	$(DOCS)/bin/python -m pip install --quiet -e '.[docs]'
	@touch $@

$(PACKAGING)/.ready:
	$(call venv,$(PACKAGING))
	@touch $@
