# Everything starts here; on a fresh clone each target needs Python 3.11 to 3.13 and make, nothing else.
# `scripts/setup.py` makes .venv on the first run and does nothing on later ones.
# Options of a target's command go through ARGS: make demo ARGS="--scenario kill"; `make truth PROTOCOLS=share` plays only these.

PYTHON ?= python3
BIN := .venv/bin
ARGS ?=
PROTOCOLS ?= classic consumer share streams

.DEFAULT_GOAL := help
.PHONY: help setup demo test quick coverage test-long truth fleet rows night check bench release clean

help: ## Show the targets, each with its sentence.
	@sed -n 's/^\([a-z-]*\):[^#]*## \(.*\)$$/  make \1:\2/p' $(MAKEFILE_LIST) | while IFS=: read -r name text; do \
		printf '%-16s %s\n' "$$name" "$$text"; done

setup: ## Make .venv with every dependency pinned and hashed; the first time a few minutes, then nothing.
	@$(PYTHON) scripts/setup.py

demo: setup ## Start a real broker, consumers with real faults and the whole pipeline; end with a verdict (2 min).
	@$(BIN)/kardia demo $(ARGS)

# Spark starts often in the tests, each time quicker with the archive of its classes, which is made once for a machine (1 min).
test: setup ## Run all tests, same examples each time; says at the end what a missing system package left out (40 min).
	@$(BIN)/python -m spark_jobs.class_archive
	@$(BIN)/python -m pytest $(ARGS)

quick: setup ## Style, and the tests that take no time: for the loop of whoever works on it (a minute and a half).
	@$(BIN)/ruff check --quiet .
	@$(BIN)/ruff format --check --quiet .
	@$(BIN)/lint-imports --no-logo
	@$(BIN)/python -m pytest --quick -m "not slow and not long" $(ARGS)

coverage: setup ## Count the lines of kardia/ that its tests run; fails below what is held (5 min).
	@$(BIN)/python -m pytest --cov --cov-report=term:skip-covered -m "not slow and not long" $(ARGS) \
		tests/coordinator tests/corpora tests/golden tests/kardia tests/lag tests/observe tests/public_cases tests/story tests/truth

test-long: setup ## Run the heavier sweeps as well, on new examples; says how to draw the same again (hours).
	@$(BIN)/python -m pytest -m "long or not long" --hypothesis-profile=new $(ARGS)

fleet: setup ## Hold the observer against 20,000 simulated groups; writes docs/reference/truth.md (half an hour and more).
	@failed=0; \
	$(BIN)/python -m tests.truth.fleet --total 20000 --groups 100 --seed 1001 --markdown docs/reference/truth.md $(ARGS) || failed=1; \
	$(BIN)/python -m tests.truth.fleet --epochs --total 500 --groups 5 --seed 4001 --markdown docs/reference/truth.md $(ARGS) || failed=1; \
	$(BIN)/python -m tests.truth.fleet.evidence_levels --groups 30 --seed 5001 || failed=1; \
	exit $$failed

truth: setup ## Hold the model against Kafka's own classes, a million operations per release and kind of groups; writes docs/reference/truth.md (hours).
	@failed=0; for protocol in $(PROTOCOLS); do \
		$(BIN)/python -m tests.truth.run --protocol $$protocol --operations 1000000 --markdown docs/reference/truth.md $(ARGS) || failed=1; \
	done; exit $$failed

rows: setup ## Hold all rows of all recorded and 2,000 simulated groups against what was agreed on; --accept agrees (5 min).
	@$(BIN)/python -m tests.rows $(ARGS)

night: setup ## Run `kardia up` beside a real broker for an hour with faults by chance; ends with what was wrong (1 h).
	@$(BIN)/python -m tests.night $(ARGS)

check: setup ## Style, types and import contracts: ruff, mypy --strict, lint-imports (1 min).
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports

bench: setup ## Measure throughput and latency, each beside a baseline of the same run and the runs before it (25 min).
	@$(BIN)/kardia bench --history bench/history.jsonl $(ARGS)

release: setup ## Build what a release is made of into dist/: the wheel, its list of parts, their digests; publishes nothing.
	@$(BIN)/python -m scripts.release

clean: ## Remove what set-up and runs have made in this folder; the cache of jars and packages stays.
	@rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache build dist kardia-data \
		spark-warehouse metastore_db derby.log
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
