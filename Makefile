# The targets a person types. Each does all the set-up it needs.
#   PYTHON  interpreter for a new environment (default: the first Python >= 3.11 found)
#   VENV    the environment's folder
#   ARGS    more arguments, for example: make test ARGS="tests/worker -k guard"
#   HIDE_OPTIONAL=1  run the tests as where no optional part is installed (Chromium, nginx, ...)
.DEFAULT_GOAL := help
VENV ?= .venv
export VENV PYTHON
# The tests start some hundred processes: each would compile every module anew.
unexport PYTHONDONTWRITEBYTECODE
ready := $(VENV)/ready

.PHONY: help setup demo test test-extended screenshots simulate mutants kill soak fuzz clients lint format generate bench bench-peers profile lock clean

help: ## Show the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(ready): requirements/dev.txt pyproject.toml clients/python/pyproject.toml
	@sh scripts/setup.sh

setup: $(ready) ## Make the environment (.venv); instant when nothing changed
	@echo "setup: $(VENV) is ready"

demo: $(ready) ## Place three orders with the real parts: gateway, sandbox shop, worker, upstream
	@$(VENV)/bin/python -m demo $(ARGS)

pytest = $(VENV)/bin/pytest -n auto --dist worksteal --durations 10 -q

test: $(ready) ## Run the tests, in parallel; below five minutes on two cores
	@$(pytest) -m "not extended" $(ARGS)

test-extended: $(ready) ## Run the further tests: more crash points, runbook flows, the demo's and the benchmarks' own
	@$(pytest) -m extended $(ARGS)

screenshots: $(ready) ## Draw the pictures of docs/console.md anew (needs Chromium)
	@$(VENV)/bin/python -m tests.gateway.console.chromium.screenshots

simulate: $(ready) ## Simulate RUNS=2000 lives in each kind of WORLD with every fault (SEED=1, JOBS: all cores)
	@$(VENV)/bin/python -m tests.simulation --runs $(or $(RUNS),2000) --seed $(or $(SEED),1) $(if $(JOBS),--jobs $(JOBS)) $(if $(WORLD),--world $(WORLD)) $(ARGS)

mutants: $(ready) ## Take out one safeguard after the other; the simulation must find each out
	@$(VENV)/bin/python -m tests.simulation --mutants --seed $(or $(SEED),1) $(if $(JOBS),--jobs $(JOBS)) $(if $(ONLY),--only $(ONLY)) $(ARGS)

kill: $(ready) ## Kill and restart the real processes ROUNDS=300 times while the shop counts (GATEWAYS=2: on PostgreSQL)
	@$(VENV)/bin/python -m tests.faults --rounds $(or $(ROUNDS),300) --seed $(or $(SEED),1) $(if $(GATEWAYS),--postgres --gateways $(GATEWAYS))

soak: $(ready) ## Chaos test of the real processes under load for MINUTES=10
	@$(VENV)/bin/python -m tests.faults --minutes $(or $(MINUTES),10) --seed $(or $(SEED),1)

fuzz: $(ready) ## Fuzz what reads intents and shop pages for SECONDS=60 (TARGET=intent or pages)
	@$(VENV)/bin/python -c 'import atheris' 2> /dev/null || $(VENV)/bin/python -m pip --quiet --disable-pip-version-check \
		install --only-binary :all: --require-hashes --requirement requirements/fuzz.txt || true
	@$(VENV)/bin/python -m tests.fuzz --seconds $(or $(SECONDS),60) $(if $(TARGET),--target $(TARGET))

clients: $(ready) ## Build the example clients and run them against the real programs (LANGUAGE="typescript go": those)
	@$(VENV)/bin/python -m clients $(LANGUAGE) $(ARGS)

lint: $(ready) ## Check style, types, import rules, the contract, and that generated code is current
	@sh scripts/lint.sh $(ARGS)

format: $(ready) ## Bring Python and proto files into their one form
	@$(VENV)/bin/ruff check --quiet --fix-only .
	@$(VENV)/bin/ruff format --quiet .
	@$(VENV)/bin/buf format --write

generate: $(ready) ## Write clients/python/ordergateway/v1 from proto/, and .env.example from the settings
	@sh scripts/generate.sh
	@$(VENV)/bin/python scripts/env_example.py > .env.example

bench: $(ready) ## Measure beside the floor of the same run (QUICK=1: shorter, FULL=1: ten million tasks, RECORD=1: keep)
	@$(VENV)/bin/python -m bench $(if $(QUICK),--quick) $(if $(FULL),--full) $(if $(RECORD),--record) $(ARGS)

profile: $(ready) ## Profile the gateway under a load: KIND=submit, many, batch, cycle, wakeup (SECONDS=10)
	@$(VENV)/bin/python -c 'import sys; sys.exit(not __import__("shutil").which("py-spy", path="$(VENV)/bin"))' 2> /dev/null || \
		$(VENV)/bin/python -m pip --quiet --disable-pip-version-check install --require-hashes --requirement requirements/profile.txt
	@$(VENV)/bin/python -m bench.profile $(or $(KIND),submit) $(or $(SECONDS),10)

bench-peers: $(ready) ## Measure the gateway beside other queues on one PostgreSQL server (QUICK=1: shorter)
	@$(VENV)/bin/python -c 'import pgqueuer, procrastinate' 2> /dev/null || $(VENV)/bin/python -m pip --quiet \
		--disable-pip-version-check install --require-hashes --requirement requirements/peers.txt || true
	@$(VENV)/bin/python -m bench peers $(if $(QUICK),--quick) $(ARGS)

lock: ## Pin the dependencies of pyproject.toml anew in requirements/ (needs uv)
	@sh scripts/lock.sh

clean: ## Remove the environment, caches and data of demos
	@rm -rf $(VENV) .venv-* .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache build dist
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
