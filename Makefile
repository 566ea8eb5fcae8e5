# Two commands matter: `make demo` and `make test`. Both prepare what they need.
# The virtual environment is .venv; a Java runtime is fetched into .jdk where none is found.

VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
# The site needs a few packages only, and no Spark; where everything is there already, that does.
DOCS := $(if $(wildcard $(READY)),$(VENV),.versions/docs)
# So does the demo, in the same environment.
DEMO := $(if $(wildcard $(READY)),$(READY),$(VENV)/.ready-demo)

# Hundreds of Python processes start below; without bytecode each compiles everything again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help demo test quick thorough answers docs test-versions interop stores soak restores simulate prove fuzz format bench clean
.DEFAULT_GOAL := help

help:  ## Show this list
	@sed -n 's/^\([a-z-]*\):.*##/  make \1 #/p' Makefile | column -t -s '#'

demo: $(DEMO)  ## Ingest a year of flights, kill the driver on the way, prove that nothing is lost
	@JAVA_HOME="$$($(BIN)/python tools/java_home.py)" && export JAVA_HOME && \
		exec $(BIN)/python -m examples.demo

test: $(READY)  ## Check format, lint, types and borders, and run the tests (or TESTS=reader/files/formats/csv)
	@tools/check.sh $(TESTS)

quick: $(READY)  ## The same without Spark, servers and slow tests: before each commit
	@tools/check.sh --quick

thorough: $(READY)  ## Run what `make test` leaves out: more codecs, seeds, kills and examples of what it tests
	@tools/check.sh --thorough

answers: $(READY)  ## Record Spark's answers, which the tests compare with (or ANSWERS=tests/reader/files/formats/csv)
	@tools/check.sh --answers $(ANSWERS)

docs: $(DOCS)/.ready  ## Make the site of the documentation: build/site/index.html
	@tools/site.sh $(DOCS)/bin

test-versions:  ## Run the tests on every supported Python and PySpark (VERSIONS="--pairs 3.13/4.3 -- tests/spark")
	@python3 tools/test_versions.py $(VERSIONS)

interop:  ## Read and write tables together with Spark's Delta and Iceberg connectors (fetched by Maven)
	@if command -v mvn >/dev/null; then exec python3 tools/test_versions.py --pairs 3.11/4.1 -- -m thorough tests/interop; \
		else echo "skipped: it needs Maven, whose command mvn is not here"; fi

stores: $(READY)  ## Try real servers of S3, which Go builds and Maven fetches (STORES=MinIO chooses one)
	@STORES="$(or $(STORES),all)" STORES_TABLE=build/stores.md HYPOTHESIS_PROFILE=ci $(BIN)/python -m pytest \
		-c pyproject.toml --rootdir tests -m '' -o faulthandler_timeout=0 tests/stores

soak: $(READY)  ## Kill driver, coordinator and workers at random (SOAK="--kills 200 --minutes 120 --cluster-share 0.5")
	@JAVA_HOME="$$($(BIN)/python tools/java_home.py)" && export JAVA_HOME && \
		exec $(BIN)/python tests/spark/soak.py $(SOAK)

restores: $(READY)  ## Kill runs, and restore their tables and checkpoints from backups at random (RESTORES="--kills 200")
	@JAVA_HOME="$$($(BIN)/python tools/java_home.py)" && export JAVA_HOME && \
		exec $(BIN)/python -m pyspark_sluice.tests.connector.host.restores $(RESTORES)

format: $(READY)  ## Put every file into the house format
	@$(BIN)/ruff format . && $(BIN)/ruff check --fix .

bench: $(READY)  ## Measure against Spark's own file source (BENCH="csv json" chooses rows)
	@JAVA_HOME="$$($(BIN)/python tools/java_home.py)" && export JAVA_HOME && \
		exec $(BIN)/python -m benchmarks $(BENCH)

simulate: $(READY)  ## Search for a run of the protocol that must not be (SIMULATE="--seconds 600"), for each planted bug, and among aligned sources
	@$(BIN)/python -m pyspark_sluice.tests.protocol.simulate $(SIMULATE)
	@HYPOTHESIS_PROFILE=nightly $(BIN)/python -m pytest -m '' -o faulthandler_timeout=0 \
		tests/protocol/test_planted.py tests/protocol/test_alignment.py tests/connector/source/test_courses.py

prove:  ## Search a model of the protocol to its end (needs SPIN and a C compiler; PROVE="--short")
	@python3 tests/protocol/model/prove.py $(PROVE)

fuzz: $(READY)  ## Compare five readings of generated files of the text formats (FUZZ="--minutes 60 --formats csv json --seed 7")
	@JAVA_HOME="$$($(BIN)/python tools/java_home.py)" && export JAVA_HOME && \
		exec $(BIN)/python -m pyspark_sluice.tests.reader.readings $(FUZZ)

clean:  ## Remove everything that these commands have made
	rm -rf $(VENV) .versions .jdk build *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis \
		.import_linter_cache

.versions/docs/.ready: setup.cfg tools/prepare.sh tools/prepare.py
	@tools/prepare.sh .versions/docs --only docs
	@touch $@

$(VENV)/.ready-demo: setup.cfg tools/prepare.sh tools/prepare.py
	@tools/prepare.sh $(VENV) --extras demo,report,spark
	@touch $@

# Made again whenever the dependencies change.
$(READY): setup.cfg pyproject.toml tools/prepare.sh tools/prepare.py
	@tools/prepare.sh $(VENV)
	@touch $@
