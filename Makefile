# One command each. Needs make and Python 3.11-3.13, nothing else: no root, no apt, no Docker.
#
#   make demo          40 jobs through injected faults, with the proof table
#   make run           the same fleet, without faults, until Ctrl-C
#   make test          the whole suite but the browser, on a real Redis and a real PostgreSQL it brings itself
#   make test-browser  the tests that drive headless Chromium (needs chromium and chromedriver)
#   make check         formatting, lint, types, import contracts, unit tests
#   make bench         our figures beside their yardsticks
#   make crash-proof   1,000 deaths under load, audited, on SQLite and PostgreSQL; writes docs/proof/crash.md
#   make soak          an hour of mixed load with faults, and what grew
#   make rescue        every fault, and the time until its rescue; writes docs/proof/rescue.md
#   make lock          resolve the lock files anew
#   make clean         remove what these commands created

.DEFAULT_GOAL := help
.PHONY: help demo run test test-browser check bench crash-proof soak rescue lock clean

VENV   := .venv
BIN    := $(VENV)/bin
PYTEST := $(BIN)/python -m pytest
# The first Python that fits. `PYTHON=… make …` chooses another one.
PYTHON ?= $(firstword $(foreach name,python3.13 python3.12 python3.11 python3,\
            $(if $(shell $(name) -c 'import sys, venv, ensurepip; (3, 11) <= sys.version_info[:2] <= (3, 13) or sys.exit(1)' \
              >/dev/null 2>&1 && echo yes),$(name))))

help:
	@sed -n 's/^#   make/  make/p' Makefile

demo: $(VENV)/.runtime
	$(BIN)/homing demo $(ARGS)

run: $(VENV)/.runtime
	$(BIN)/homing up --embedded $(ARGS)

# Four processes on two cores too: half of them mostly wait (tests/services/scheduling.py).
test: $(VENV)/.dev
	$(PYTEST) -n 4 --dist loadfile -m "not browser" $(ARGS)

test-browser: $(VENV)/.dev
	$(PYTEST) -m browser $(ARGS)

check: $(VENV)/.dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(PYTEST) -n auto --maxprocesses 4 tests/unit $(ARGS)

bench: $(VENV)/.dev
	$(BIN)/python -m benchmarks $(ARGS)

soak: $(VENV)/.dev
	$(BIN)/python -m benchmarks.soak $(ARGS)

rescue: $(VENV)/.dev
	$(BIN)/python -m benchmarks.rescue $(ARGS)

# Goes on where it was with ARGS=--resume; other arguments: --kills --seed --database --folder.
crash-proof: $(VENV)/.dev
	$(BIN)/python -m tests.crashing --report docs/proof/crash.md $(ARGS)

lock: $(VENV)/.dev
	$(BIN)/python -m pip install -q uv
	$(LOCK) --extra build -o requirements.lock
	$(LOCK) --extra build --extra dev -c requirements.lock -o requirements-dev.lock

LOCK = $(BIN)/uv pip compile pyproject.toml --quiet --universal --python-version 3.11 --generate-hashes \
       --no-annotate --no-emit-index-url --custom-compile-command "make lock" --upgrade

clean:
	rm -rf $(VENV) .homing build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis

# ------------------------------------------------------------------------------------------------- the environment
# Stamps: an install is repeated only when its lock file or the package description changed.

$(VENV)/.runtime: requirements.lock pyproject.toml | $(VENV)/pyvenv.cfg
	@echo "Installing the locked dependencies (once; a minute or two)"
	@$(BIN)/python -m pip install --quiet --require-hashes -r requirements.lock
	@$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation -e .
	@touch $@

$(VENV)/.dev: requirements-dev.lock $(VENV)/.runtime
	@echo "Installing the locked development tools (once)"
	@$(BIN)/python -m pip install --quiet --require-hashes -r requirements-dev.lock
	@touch $@

$(VENV)/pyvenv.cfg:
	@[ -n "$(PYTHON)" ] || { \
	  echo "Homing needs Python 3.11, 3.12 or 3.13 with venv and ensurepip; none was found on PATH."; \
	  echo "Debian or Ubuntu: apt install python3 python3-venv.  macOS: brew install python@3.13."; \
	  echo "Elsewhere: PYTHON=/path/to/python3.12 make ..."; exit 1; }
	@echo "Creating $(VENV) with $(PYTHON)"
	@$(PYTHON) -m venv $(VENV)
