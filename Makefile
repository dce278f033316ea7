# The commands of this repository. `make help` lists them.
#
# Everything installs into virtual environments beside this file; nothing outside the repository is touched.
#   make PYTHON=python3.12 test      another interpreter
#   make WORKERS=8 test              more test processes
#   make ARGS="tests/ir -x" test     what pytest is given
#   make PART= test-newest           all of the tests there too

PYTHON ?= python3
NEWEST ?= 3.13
WORKERS ?= 2
ARGS ?=
# What `test-newest` runs: the backend's tests, and one of each other file.
PART ?= --one-of-each

VENV := .venv
VENV_NEWEST := .venv-newest
VENV_LIBRARIES := .venv-libraries
VENV_TORCH := .venv-torch
TORCH := 2.13.0
FLAX := 0.12.8
BIN := $(VENV)/bin
PYTEST_OPTIONS := -n $(WORKERS)

# Bridges to other frameworks are not installed with the rest: jax is there for tests, torch is large (`test-torch`).
BRIDGES := plugins/to_jax plugins/to_torch
PLUGINS := $(filter-out $(BRIDGES),$(patsubst %/pyproject.toml,%,$(wildcard plugins/*/pyproject.toml)))
PYPROJECTS := pyproject.toml $(PLUGINS:%=%/pyproject.toml) $(BRIDGES:%=%/pyproject.toml)
# One pip call for all of it: the distributions name each other, and only together do they resolve.
EDITABLE := -e '.[demo]' $(PLUGINS:%=-e ./%)
# Manifests and stubs are not in git; they say what the plugins' code says.
PLUGIN_SOURCES := $(shell find plugins examples/plugins -path '*/src/*' -name '*.py')
WRITE_MANIFESTS = $(BIN)/python -m tools.write_manifests && touch $(VENV)/.stamp-manifests
SOURCES := corejax plugins tests $(wildcard examples benchmarks docs tools)

# Tests start hundreds of processes, each of which would compile every module that it imports.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help install demo examples test test-plain test-newest test-slow test-libraries test-library-suites bench-libraries sweep-bridges lint types format docs freeze bench bench-against bench-plugins scale manifests clean distclean

help:  ## This list
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  make %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

install: $(VENV)/.stamp-demo  ## Everything of this repository, editable, in .venv

demo: $(VENV)/.stamp-demo  ## Learn handwritten digits, then list the primitives
	$(BIN)/python examples/digits/train.py
	$(BIN)/corejax list-primitives

examples: $(VENV)/.stamp-demo  ## Run the programs of examples/, a minute each at most; pictures in build/examples
	@mkdir -p build/examples
	@set -e; for program in $(basename $(notdir $(wildcard examples/*.py))); do \
	    echo "== examples/$$program.py"; $(BIN)/python examples/$$program.py --output build/examples/$$program.png; \
	done

test: lint $(VENV)/.stamp-manifests  ## Lint, then the tests
	$(BIN)/python -m pytest $(PYTEST_OPTIONS) $(ARGS)

test-plain: $(VENV)/.stamp-test  ## The tests without the engine, corejax-eager
	$(BIN)/python -m pytest $(PYTEST_OPTIONS) --plain $(ARGS)

test-newest:  ## The backend's tests and one of each other file, on Python 3.13 with the newest jaxlib
	@python=$$($(PYTHON) tools/find_python.py $(NEWEST)) || exit 1; \
	if [ -z "$$python" ]; then \
	    echo "test-newest: skipped, no Python $(NEWEST) on PATH or among pyenv's versions"; \
	else \
	    $(MAKE) --no-print-directory PYTHON="$$python" run-test-newest; \
	fi

.PHONY: run-test-newest
run-test-newest: $(VENV_NEWEST)/.stamp-test
	@$(VENV_NEWEST)/bin/python -c "import sys, jaxlib; print('Python', sys.version.split()[0], 'with jaxlib', jaxlib.__version__)"
	$(VENV_NEWEST)/bin/python -m pytest $(PYTEST_OPTIONS) $(PART) $(ARGS)

test-torch:  ## The tests of corejax-to-torch, in an environment of their own with PyTorch and Flax
	@echo "test-torch: downloads PyTorch $(TORCH) and its libraries (200 MB for the CPU, up to 6 GB with CUDA), and Flax $(FLAX)"
	@$(MAKE) --no-print-directory run-test-torch

.PHONY: run-test-torch
run-test-torch: $(VENV_TORCH)/.stamp-test
	$(VENV_TORCH)/bin/python -m pytest -n $(WORKERS) tests/to_torch $(ARGS)

sweep-bridges: $(VENV)/.stamp-test $(VENV_TORCH)/.stamp-test  ## Every primitive under twenty nests of transformations, in JAX and in PyTorch
	$(BIN)/python -m tools.sweep_bridges jax $(ARGS)
	$(VENV_TORCH)/bin/python -m tools.sweep_bridges torch $(ARGS)
	$(VENV_TORCH)/bin/python -m tools.sweep_bridges torch-kernel $(ARGS)

test-slow: $(VENV)/.stamp-test  ## The tests marked slow, all examples of random ones, and numbers of optimised programs
	$(BIN)/python -m pytest $(PYTEST_OPTIONS) -m "slow or hypothesis or numbers" $(ARGS)

test-libraries: $(VENV_LIBRARIES)/.stamp  ## A program for each of JAX's libraries, without jax (ARGS="optax flax_nnx")
	$(VENV_LIBRARIES)/bin/python -m tools.test_libraries $(ARGS)

test-library-suites: $(VENV_LIBRARIES)/.stamp  ## Tests of JAX's libraries, from their sources (CHECKOUTS=... JAX_PYTHON=...)
	$(VENV_LIBRARIES)/bin/python -m tools.library_suites $(CHECKOUTS) $(if $(JAX_PYTHON),--jax $(JAX_PYTHON)) $(ARGS)

bench-libraries: $(VENV_LIBRARIES)/.stamp  ## JAX's libraries on corejax beside JAX (JAX_PYTHON=...)
	$(VENV_LIBRARIES)/bin/python benchmarks/libraries.py --jax $(JAX_PYTHON) $(ARGS)

lint: $(VENV)/.stamp-test  ## ruff, import-linter, odd words, reasons of ignored types, mypy
	$(BIN)/ruff check --quiet $(SOURCES)
	$(BIN)/ruff format --check --quiet $(SOURCES)
	$(BIN)/python -m tools.site.code_lines
	$(BIN)/lint-imports --no-logo
	$(BIN)/python -m tools.odd_words
	$(BIN)/python -m tools.type_ignores
	$(BIN)/mypy

types: $(VENV)/.stamp-test  ## What pyright, mypy and jedi make of the stubs (pyright needs Node.js)
	$(BIN)/python -m pytest tests/stubs $(ARGS)

format: $(VENV)/.stamp-test  ## Rewrite the code in the common format, with the safe fixes
	$(BIN)/ruff check --fix --quiet $(SOURCES)
	$(BIN)/ruff format --quiet $(SOURCES)
	$(BIN)/python -m tools.site.code_lines --write

docs: $(VENV)/.stamp-docs  ## The site, with the reference of all names: build/site/index.html
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --quiet
	@echo "build/site/index.html; with search: $(BIN)/python -m http.server -d build/site"

freeze: $(VENV)/.stamp-test  ## Accept the surface of corejax.extend as it is now
	$(BIN)/python tools/freeze_extend.py

bench: $(VENV)/.stamp-test  ## Time corejax beside jax
	$(BIN)/python benchmarks/run.py $(ARGS)

bench-against: $(VENV)/.stamp-test  ## Time this checkout against another commit, without compiled code (BASE=...)
	@test -n "$(BASE)" || { echo "bench-against: name the commit, as in BASE=HEAD~1"; exit 1; }
	@test -e build/base-$(BASE)/Makefile || git worktree add --force --quiet --detach build/base-$(BASE) $(BASE)
	@$(MAKE) --no-print-directory -C build/base-$(BASE) .venv/.stamp-test
	$(BIN)/python benchmarks/against.py build/base-$(BASE) $(ARGS)

bench-plugins: $(VENV)/.stamp-test  ## Time what plugins cost: calls, loading, the command, verify
	$(BIN)/python benchmarks/plugins.py $(ARGS)

scale: $(VENV)/.stamp-test  ## Weak and strong scaling on the cores there are; steps compiled for up to 4,096 devices
	$(BIN)/python benchmarks/scale.py $(ARGS)

manifests: $(VENV)/.stamp-test  ## Write the plugins' manifests and stubs (not in git), and the table of what distributions provide
	$(WRITE_MANIFESTS)
	$(BIN)/python -m tools.write_homes

clean:  ## Remove what tools and builds left behind
	rm -rf build dist .hypothesis .mypy_cache .pytest_cache .ruff_cache .import_linter_cache
	rm -rf $(foreach left,build dist .hypothesis .pytest_cache,plugins/*/$(left) examples/plugins/*/$(left))
	find corejax plugins tests tools $(wildcard examples benchmarks docs) -name __pycache__ -type d -prune -exec rm -rf {} +

distclean: clean  ## ... and the virtual environments
	rm -rf $(VENV) $(VENV_NEWEST) $(VENV_LIBRARIES) $(VENV_TORCH) *.egg-info plugins/*/src/*.egg-info
	rm -f plugins/*/src/*/corejax_manifest.json examples/plugins/*/src/*/corejax_manifest.json
	rm -rf plugins/*/src/*/stubs && git clean -fqX corejax

# A stamp is older than its pyproject files exactly when something has to be installed again.
$(VENV)/.stamp-demo: $(PYPROJECTS)
	@$(PYTHON) tools/setup_env.py $(VENV) $(EDITABLE)
	@$(WRITE_MANIFESTS)
	@touch $@

$(VENV)/.stamp-test: $(PYPROJECTS) requirements-test.txt requirements-test-newest.txt
	@$(PYTHON) tools/setup_env.py $(VENV) -r requirements-test.txt $(EDITABLE) $(BRIDGES:%=-e ./%)
	@$(WRITE_MANIFESTS)
	@touch $@ $(VENV)/.stamp-demo

$(VENV_TORCH)/.stamp-test: $(PYPROJECTS) requirements-test-newest.txt
	@$(PYTHON) tools/setup_env.py $(VENV_TORCH) torch==$(TORCH) flax==$(FLAX) -r requirements-test-newest.txt $(EDITABLE) $(BRIDGES:%=-e ./%)
	@$(VENV_TORCH)/bin/python -m tools.write_manifests
	@touch $@

$(VENV)/.stamp-manifests: $(VENV)/.stamp-demo $(PLUGIN_SOURCES)
	@$(WRITE_MANIFESTS)

$(VENV)/.stamp-docs: $(VENV)/.stamp-demo requirements-docs.txt
	@$(PYTHON) tools/setup_env.py $(VENV) -r requirements-docs.txt
	@touch $@

$(VENV_LIBRARIES)/.stamp: $(PYPROJECTS) tests/as_jax/libraries.txt
	@$(PYTHON) tools/setup_env.py $(VENV_LIBRARIES) $(EDITABLE)
	@$(VENV_LIBRARIES)/bin/python -m pip install --quiet --no-deps -r tests/as_jax/libraries.txt
	@$(VENV_LIBRARIES)/bin/python -m tools.write_manifests
	@touch $@

$(VENV_NEWEST)/.stamp-test: $(PYPROJECTS) requirements-test-newest.txt
	@$(PYTHON) tools/setup_env.py $(VENV_NEWEST) --upgrade --upgrade-strategy eager -r requirements-test-newest.txt $(EDITABLE)
	@$(VENV_NEWEST)/bin/python -m tools.write_manifests
	@touch $@
