# Two commands matter: `make demo` and `make test`. Both make what they need (.venv included).
PYTHON ?= python3
ARGS ?=
KUBERNETES ?= 1.37.2
E2E_PYTEST := -n 2 --dist loadfile -o tmp_path_retention_policy=failed
BIN := .venv/bin
STAMP := .venv/.installed
E2E_STAMP := .venv/.installed-e2e
BENCH_STAMP := .venv/.installed-bench

.DEFAULT_GOAL := help
.PHONY: install demo test check e2e e2e-matrix bench bench-cluster fuzz format docs lock help

$(STAMP): requirements/dev.txt pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit("Python 3.11 or newer is needed, this is " + sys.version.split()[0] if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/dev.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	touch $@

$(E2E_STAMP): $(STAMP) requirements/e2e.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/e2e.txt
	touch $@

$(BENCH_STAMP): $(STAMP) requirements/bench.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/bench.txt
	touch $@

install: $(STAMP) ## Create .venv with everything pinned in requirements/dev.txt

demo: $(STAMP) ## A day of GPU faults with and without Surefoot; ARGS="--nodes 48 --seed 7 --json"
	$(BIN)/surefoot demo $(ARGS)

test: $(STAMP) ## Every test, with the coverage gates
	$(BIN)/python -m coverage erase
	$(BIN)/python -m pytest -n 3 --dist loadfile --cov --cov-report= $(ARGS)
	$(BIN)/python -m coverage report --include='scoring/*' --fail-under=98 --skip-covered --show-missing
	$(BIN)/python -m coverage report --include='extender/*' --fail-under=90 --skip-covered --show-missing

check: $(STAMP) ## Style, types, the direction of imports, the Dockerfile, the freshness of generated pages
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/hadolint Dockerfile
	$(BIN)/python -m extender.reference --check
	$(BIN)/python -m extender.rendering --check

e2e: $(E2E_STAMP) ## In front of a real kube-scheduler (needs Go 1.26); KUBERNETES=1.36.3 ARGS="-k preemption"
	PYTHONPATH=tests $(BIN)/python -m e2e.binaries $(KUBERNETES)
	$(BIN)/python -m pytest tests/e2e --kubernetes $(KUBERNETES) $(E2E_PYTEST) $(ARGS)

e2e-matrix: $(E2E_STAMP) ## The same on four versions of Kubernetes; writes docs/compatibility.md
	PYTHONPATH=tests $(BIN)/python -m e2e.matrix -- $(E2E_PYTEST) $(ARGS)

bench: $(BENCH_STAMP) ## Speed of /filter and of gang plans at 5,000 nodes; ARGS=--quick
	$(BIN)/python bench/filter.py $(ARGS)
	$(BIN)/python bench/gang.py $(ARGS)

bench-cluster: $(E2E_STAMP) ## A real kube-scheduler at 5,000 nodes with and without Surefoot; ARGS="--only gang"
	PYTHONPATH=tests $(BIN)/python bench/cluster.py $(ARGS)

fuzz: $(STAMP) ## Junk at every edge for 60 s; ARGS="--seconds 60"
	$(BIN)/python bench/fuzz.py $(ARGS)

format: $(STAMP) ## Rewrite the code in the house style
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(STAMP) ## Write what comes from the code: configuration, reasons, causes, deploy/
	$(BIN)/python -m extender.reference
	$(BIN)/python -m extender.rendering

lock: ## Pin every dependency anew, with hashes (needs uv)
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-annotate pyproject.toml -o requirements/runtime.txt
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-annotate pyproject.toml requirements/build.in --extra demo --group test --group lint -o requirements/dev.txt
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-annotate --constraint requirements/dev.txt --group e2e -o requirements/e2e.txt
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-annotate --constraint requirements/dev.txt --group bench -o requirements/bench.txt
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-annotate requirements/build.in -o requirements/build.txt

help: ## This list
	@awk -F':.*## ' '/^[a-z0-9-]+:.*## /{printf "  %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
