# make help prints the targets; each does its own set-up, and a second call is fast.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
# Some environments set it; each process then compiles all modules that it imports. Empty is as not set.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: help setup run test test-all long-tests test-part test-defaults check lint format types lit pytest quick quick-tests docs requirements mutations mutations-sample fuzz fuzz-device fuzz-loops fuzz-gradients peers-gradients peers memcheck racecheck bench bench-quick bench-models bench-gradients bench-compile bench-programs bench-readme gpubench clean

help: ## print this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## */@/' | column -t -s@

# Of thousands of modules that come along few are ever imported; Python compiles these then.
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile

$(STAMP): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(PIP) -e '.[test,lint,examples,docs]'
	touch $(STAMP)

setup: $(STAMP) ## make the virtual environment and install

run: $(STAMP) ## classify scikit-learn's digits through all tiers, train two networks on them, and one on text
	$(BIN)/python examples/digits.py
	$(BIN)/python examples/digits_train.py
	$(BIN)/python examples/digits_conv.py
	$(BIN)/python examples/chars.py

lint: $(STAMP) ## ruff: lint and format check
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

format: $(STAMP) ## ruff: fix and format in place
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# mypy finds packages by folder name, and the checkout may be called anything.
types: $(STAMP) ## mypy
	mkdir -p $(VENV)/src && ln -sfn "$(CURDIR)" $(VENV)/src/profuse
	MYPYPATH=$(VENV)/src $(BIN)/mypy -m profuse -p profuse.dialect -p profuse.lowering \
		-p profuse.executor -p profuse.tools

lit: $(STAMP) ## IR tests: lit + FileCheck
	$(BIN)/lit -j2 test

# One process more than CI has cores: some tests wait for processes that they have started.
PYTEST := $(BIN)/python -m pytest -n 3 --dist worksteal
pytest: $(STAMP) ## behaviour tests
	$(PYTEST)

check: lint types ## everything static

# One file or two of each part, chosen to be quick and to notice most of what breaks.
QUICK := test/test_import.py test/dialect/test_types.py test/dialect/test_guards.py \
	test/dialect/test_pipeline.py test/dialect/importers/capture/test_trace.py test/executor/tiers/test_tiers.py \
	test/executor/explain/test_explain.py test/executor/settings/test_settings.py \
	test/tools/test_requirements.py
quick: check quick-tests ## lint, types and a chosen set of tests, in under a minute

quick-tests: $(STAMP) ## these tests alone
	$(PYTEST) $(QUICK)
	$(BIN)/lit -q -j2 test/dialect/passes/cleanup/cse.mlir \
		test/dialect/passes/speculate/insert-guards.mlir test/lowering/emit/loops.mlir

# Anything that the generator warns about, such as a link that leads nowhere, is an error.
docs: $(STAMP) ## the site, in build/docs/html
	$(BIN)/sphinx-build -q -W --keep-going -j 2 -b html -d build/docs/doctrees docs build/docs/html

requirements: $(STAMP) ## check docs/requirements.md, say what has no test
	$(BIN)/python -m profuse.tools.requirements

mutations: $(STAMP) ## break the code on purpose: do the tests notice?
	$(BIN)/python test/mutations.py --jobs 2

mutations-sample: $(STAMP) ## the quick ones of a tenth of these, another tenth at another commit
	$(BIN)/python test/mutations.py --jobs 2 --sample --seconds 120

PROGRAMS ?= 2000
SEED ?= 0
fuzz: $(STAMP) ## PROGRAMS random NumPy programs, drawn by SEED, on all tiers against NumPy
	cd test && ../$(BIN)/python -m fuzz --programs $(PROGRAMS) --seed $(SEED)
	cd test && ../$(BIN)/python -m fuzz.world --programs $(PROGRAMS) --seed $(SEED)
	cd test && ../$(BIN)/python -m fuzz.training --programs $(PROGRAMS) --seed $(SEED)

fuzz-device: $(STAMP) ## PROGRAMS random functions of both fusers, and the gradients of a tenth as many
	cd test && ../$(BIN)/python -m fuzz.device --programs $(PROGRAMS)
	cd test && ../$(BIN)/python -m fuzz.device --gradients --programs $$(($(PROGRAMS) / 10))

fuzz-loops: $(STAMP) ## PROGRAMS random programs with loops, branches and jumps, in all tiers
	cd test/dialect/importers && PROFUSE_CACHE=off ../../../$(BIN)/python source_programs.py \
		$(PROGRAMS) --seed $(SEED) --compiled

fuzz-gradients: $(STAMP) ## gradients of PROGRAMS random functions, in all ways to them
	cd test/dialect/gradients && ../../../$(BIN)/python differential.py --programs $(PROGRAMS) --seed $(SEED)

# JAX, torch and expecttest (torch's operator database imports it) come with the extra bench. What
# is not installed is skipped.
peers-gradients: $(STAMP) ## gradients against JAX and torch's operator database, where installed
	EVERY_CASE=1 $(BIN)/python -m pytest -rs test/peers

# The default run passes without these packages, and skips the tests that need them. Installed into the same
# environment; torch is pinned to a build for CPUs, as a range may bring several GB.
PEERS := $(VENV)/.peers
$(PEERS): $(STAMP) .ci/peers.txt
	$(PIP) -r .ci/peers.txt
	touch $(PEERS)

PEERS_OPTIONS ?=
peers: $(PEERS) ## tests against torch, ONNX and JAX, which are installed for them
	$(PYTEST) $(PEERS_OPTIONS) test/peers test/dialect/importers/foreign test/executor/exchange
	$(PYTEST) test/docs -k "torch.md or sources.md"

memcheck: $(STAMP) ## calls in emitted code under valgrind, where that is installed
	PYTHONMALLOC=malloc OPENBLAS_NUM_THREADS=1 valgrind --quiet --error-exitcode=9 \
		--undef-value-errors=no --smc-check=all-non-file \
		--suppressions=test/executor/valgrind.supp $(BIN)/python test/executor/memcheck.py

racecheck: $(STAMP) ## kernels and their threads under ThreadSanitizer, where GCC has it
	$(BIN)/python test/lowering/racecheck.py

# Each process of pytest would rewrite the asserts of all files of tests of a new checkout.
REWRITTEN := $(VENV)/.rewritten
$(REWRITTEN): $(STAMP)
	$(BIN)/python -m pytest --collect-only -q > $(VENV)/collected.txt || (tail -n 40 $(VENV)/collected.txt; false)
	touch $(REWRITTEN)

# What takes one core each is made side by side; pytest has both.
test: $(STAMP) ## all checks and tests
	$(MAKE) -j2 --output-sync=target check requirements lit docs $(REWRITTEN)
	$(MAKE) pytest

# Every case, compiled as users compile: what docs/testing.md calls every case, and no memo of compiles.
test-all: check lit requirements docs test-defaults ## the same with every case, each compile in full; an hour
	EVERY_CASE=1 $(PYTEST)

# Other tests ask for errors where users have Python run a function.
test-defaults: $(STAMP) ## the tests of training under the settings that users have
	TEST_UNSUPPORTED=python $(PYTEST) test/executor/tape test/executor/backward test/dialect/gradients

long-tests: $(STAMP) ## run all of these tests, and list those that take long: test/long_tests.txt
	$(PYTEST) --list-long

PART ?= $(shell git rev-parse --short HEAD)/120
test-part: $(STAMP) ## of test-all's tests, those of PART (seed/number of parts); by default the commit's
	EVERY_CASE=1 $(PYTEST) --part $(PART)

# Peers are compared where they are installed: .venv/bin/pip install -e '.[bench]'. BENCH passes
# options on, as in make bench BENCH="--threads 1 all --budget 3600"; a second call goes on.
BENCH ?=
bench: $(STAMP) ## speed of kernels against NumPy and installed peers, in build/bench
	mkdir -p build/bench
	$(BIN)/python bench/kernels.py --json build/bench/kernels.json --plot build/bench/kernels.svg $(BENCH)

bench-quick: $(STAMP) ## the same in float32, on one size, in a few rounds
	$(BIN)/python bench/kernels.py --quick $(BENCH)

bench-models: $(STAMP) ## the same for whole models, forward and training steps
	mkdir -p build/bench
	$(BIN)/python bench/models.py --json build/bench/models.json $(BENCH)

bench-gradients: $(STAMP) ## losses with their gradients, generated and by hand, against peers
	mkdir -p build/bench
	$(BIN)/python bench/gradients.py --json build/bench/gradients.json $(BENCH)

bench-compile: $(STAMP) ## time until there is code, against torch.compile and JAX
	$(BIN)/python bench/compile.py $(BENCH)

bench-programs: $(STAMP) ## NumPy programs as they are, under profuse.jit, and under numba where installed
	mkdir -p build/bench
	cd bench && ../$(BIN)/python -m programs --json ../build/bench/programs.json $(BENCH)

bench-readme: $(STAMP) ## write the tables of figures in the pages, from bench/results
	$(BIN)/python bench/readme.py

gpubench: $(STAMP) ## the same on an NVIDIA GPU, against torch, torch.compile, TorchScript and JAX
	$(BIN)/python bench/gpu.py

clean: ## remove the virtual environment and build products
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
