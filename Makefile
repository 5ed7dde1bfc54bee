# Two commands matter: `make demo` and `make test`. Both make what they need (.venv included).
PYTHON ?= python3
ARGS ?=
BIN := .venv/bin
STAMP := .venv/.installed
E2E_STAMP := .venv/.installed-e2e

.DEFAULT_GOAL := help
.PHONY: install demo test check bench fuzz format docs lock help

$(STAMP): requirements/dev.txt pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit("Python 3.11 or newer is needed, this is " + sys.version.split()[0] if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/dev.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	touch $@

$(E2E_STAMP): $(STAMP) requirements/e2e.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/e2e.txt
	touch $@

install: $(STAMP) ## Create .venv with everything pinned in requirements/dev.txt

demo: $(STAMP) ## A day of GPU faults with and without Surefoot; ARGS="--nodes 48 --seed 7 --json"
	$(BIN)/surefoot demo $(ARGS)

test: $(STAMP) ## Every test, with the coverage gates
	$(BIN)/python -m coverage erase
	$(BIN)/python -m pytest -n 2 --dist loadfile --cov --cov-report= $(ARGS)
	$(BIN)/python -m coverage report --include='scoring/*' --fail-under=98 --skip-covered --show-missing
	$(BIN)/python -m coverage report --include='extender/*' --fail-under=90 --skip-covered --show-missing

check: $(STAMP) ## Style, types, the direction of imports, the Dockerfile, the freshness of generated pages
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/hadolint Dockerfile
	$(BIN)/python -m extender.reference --check

bench: $(STAMP) ## Speed of /filter at 5,000 nodes, next to an echo in the same server
	$(BIN)/python bench/filter.py $(ARGS)

fuzz: $(STAMP) ## Junk at every edge for 60 s; ARGS="--seconds 60"
	$(BIN)/python bench/fuzz.py $(ARGS)

format: $(STAMP) ## Rewrite the code in the house style
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(STAMP) ## Write the generated pages: configuration, reasons, causes
	$(BIN)/python -m extender.reference

lock: ## Pin every dependency anew, with hashes (needs uv)
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-annotate pyproject.toml -o requirements/runtime.txt
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-annotate pyproject.toml requirements/build.in --extra demo --group test --group lint -o requirements/dev.txt
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-annotate --constraint requirements/dev.txt --group e2e -o requirements/e2e.txt
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-annotate requirements/build.in -o requirements/build.txt

help: ## This list
	@awk -F':.*## ' '/^[a-z]+:.*## /{printf "  %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
