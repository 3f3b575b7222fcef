# make demo: set up, then analyse the sample traces.  make test: set up, then every check.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SAMPLE := traces/gptoss20b_decode_synthetic.json.gz
RECORDED := traces/gptoss24_vllm_cpu.json.gz
JOBS ?= 2

.PHONY: demo test lint types layers unit slow test-wheel test-lowest test-vllm bench reference clean

$(VENV)/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	touch $@

demo: $(VENV)/.installed
	@echo "Two sample traces: $(SAMPLE) is synthetic, a GPU decoding gpt-oss-20b;"
	@echo "$(RECORDED), at the end, was recorded: vLLM on a CPU, a tiny model."
	@echo
	$(BIN)/traceanalyzer ingest $(SAMPLE)
	$(BIN)/traceanalyzer hotspots $(SAMPLE) --phase decode --limit 8
	$(BIN)/traceanalyzer blocks $(SAMPLE) --phase decode --step 1
	$(BIN)/traceanalyzer ingest $(RECORDED)

test: lint types layers unit

lint: $(VENV)/.installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python -m tests.support.house

types: $(VENV)/.installed
	$(BIN)/mypy

layers: $(VENV)/.installed
	$(BIN)/lint-imports

unit: $(VENV)/.installed
	$(BIN)/pytest -n $(JOBS)

slow: $(VENV)/.installed
	$(BIN)/pytest -m slow

# The wheel in an environment of its own, used without the sources.
test-wheel: $(VENV)/.installed
	$(BIN)/pytest -m "slow or not slow" -p no:xdist tests/project/test_distributions.py tests/project/test_installed.py

# Every dependency at the lower bound that pyproject.toml declares (the oldest Python shows most: PYTHON=python3.10).
LOWEST := .lowest
test-lowest: $(VENV)/.installed
	$(BIN)/python -m tests.support.lowest_bounds > lowest.txt
	$(PYTHON) -m venv $(LOWEST)
	$(LOWEST)/bin/pip install --quiet --disable-pip-version-check -c lowest.txt -e '.[dev]'
	$(LOWEST)/bin/pytest -n $(JOBS) -W ignore::DeprecationWarning  # of old releases about newer ones
	rm -r $(LOWEST) lowest.txt

# The real server tests: make test-vllm VLLM=folder of a virtual environment that holds vLLM.
VLLM ?= $(TRACEANALYZER_VLLM_VENV)
test-vllm: $(VENV)/.installed
	TRACEANALYZER_VLLM_VENV=$(VLLM) $(BIN)/pytest -m slow tests/commands/test_capture_vllm.py -p no:xdist

# The timed benchmarks of docs/benchmarks.md (about five hours; nothing else should run), from recordings that docs/benchmarks.md
# names; the page says how the others are run. BENCH: a folder that keeps the inputs. Less: make bench
# BENCH_LOADING='--sizes 5 50 --repeats 3'.
BENCH ?= $(or $(TMPDIR),/tmp)/traceanalyzer-bench
# HTA takes more than ten minutes of 2,000 MB: nothing uncounted before, and none of the other kind.
BENCH_LOADING ?= --warmups-at hta,2000=0 --repeats-at hta,python,500=1 hta,python,2000=0
BENCH_ANALYSES ?=
bench: $(VENV)/.installed
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[bench]'
	$(BIN)/python -m bench.loading --folder $(BENCH) $(BENCH_LOADING)
	$(BIN)/python -m bench.analyses --folder $(BENCH) $(BENCH_ANALYSES)
	$(BIN)/python -m bench.publish

# Write the generated pages of docs/reference.
reference: $(VENV)/.installed
	$(BIN)/python -m docs.generate

clean:
	rm -rf $(VENV) $(LOWEST) lowest.txt build dist .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
