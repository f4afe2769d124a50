# Needs python3 (3.11 or later) and make; everything else is pinned in requirements/dev.lock and goes to .venv.

PYTHON ?= python3
ARGS ?=
SEEDS ?= 300
SEED ?=
ENGINE ?=
DAGS ?=
MACHINES ?=
PATHS ?= .
UV := uv==0.13.7

VENV := .venv
PY := $(VENV)/bin/python
LOCK := requirements/dev.lock

# The stamps carry a checksum of what they were made from: a new lock makes a new environment, a touched file does not.
checksum = $(firstword $(shell { echo '$(CURDIR)'; cat $(1); } 2>&1 | cksum))
DEPENDENCIES := $(VENV)/dependencies-$(call checksum,$(LOCK))
PACKAGE := $(VENV)/package-$(call checksum,$(LOCK) pyproject.toml)

PYTEST := $(PY) -m pytest -q
PARALLEL := -n auto --dist worksteal
SIMULATE := $(PY) -m tests.simulation

# The console is built where its sources have changed; `infra.node` runs the node that came as a wheel.
NODE := $(PY) -m infra.node
CONSOLE := $(sort $(shell find console -name node_modules -prune -o -type f ! -name schema.d.ts -print))
CONSOLE_TOOLS := console/node_modules/tools-$(call checksum,console/package.json console/package-lock.json console/.npmrc)
SITE := build/site-$(call checksum,$(CONSOLE))
SITE_FILES := layers/core/python/sweephand/local/site

.DEFAULT_GOAL := help
.PHONY: help up test check lint bench simulate soak soak-sqlite soak-moto docs fmt lock clean console check-console screenshots

help: ## Say what each target does
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "%-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

up: $(PACKAGE) $(SITE) ## Start Sweephand on this machine (ARGS="--port 9000 --data DIR --no-examples"); Ctrl-C stops it
	@exec $(PY) -m sweephand up $(ARGS)

test: lint check-console ## Everything that must hold: lint, types, layers, and all tests on all cores
	$(PYTEST) $(PARALLEL)

check: lint ## The quick version: lint, types, layers, house rules and unit tests
	$(PYTEST) tests/test_house.py $(wildcard tests/unit)

lint: $(PACKAGE) ## Ruff, mypy and import-linter
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m mypy
	$(VENV)/bin/lint-imports --no-logo

bench: $(PACKAGE) ## Run the benchmarks (NAMES="a b" for some of them)
	$(PY) -m bench $(NAMES)

simulate: $(PACKAGE) ## Seeded simulation (SEEDS=300, or SEED=k for one; ENGINE=sqlite|moto; DAGS=1 or MACHINES=1: tasks)
	$(SIMULATE) $(if $(SEED),--seed $(SEED),--seeds $(SEEDS)) $(if $(ENGINE),--engine $(ENGINE)) $(if $(DAGS),--dags) $(if $(MACHINES),--machines)

soak: $(PACKAGE) ## The long run: every test with many more examples, then thousands of seeds and fresh ones
	SWEEPHAND_SOAK=1 $(PYTEST) $(PARALLEL) -m ""
	$(MAKE) --no-print-directory -j 2 soak-sqlite soak-moto

soak-sqlite: $(PACKAGE)
	$(SIMULATE) --engine sqlite --seeds 3000
	$(SIMULATE) --engine sqlite --seeds 300 --first $$(date +%s)
	$(SIMULATE) --engine sqlite --dags --seeds 1000
	$(SIMULATE) --engine sqlite --machines --seeds 1000

soak-moto: $(PACKAGE)
	$(SIMULATE) --engine moto --seeds 150
	$(SIMULATE) --engine moto --dags --seeds 30
	$(SIMULATE) --engine moto --machines --seeds 30

console: $(SITE) ## Build the web console, which `make up` serves

# The types of the API's client come from the OpenAPI document of the code that is here.
check-console: $(SITE) ## Types, lint and component tests of the console
	@mkdir -p build
	$(PY) -m sweephand.api.reference --openapi > build/openapi.json
	$(NODE) npm --prefix console run --silent types
	$(NODE) npm --prefix console run --silent check
	$(NODE) npm --prefix console run --silent test

screenshots: $(SITE) ## Take pictures of every page of the console, into docs/images
	$(PY) -m tests.console.screenshots

docs: $(PACKAGE) ## Regenerate the generated pages of docs/
	mkdir -p docs
	$(PY) -m sweephand.domain.lifecycle > docs/lifecycle.md.tmp
	mv docs/lifecycle.md.tmp docs/lifecycle.md
	$(PY) -m sweephand.api.reference > docs/api.md.tmp
	mv docs/api.md.tmp docs/api.md

fmt: $(PACKAGE) ## Sort the imports and format the code (PATHS=… for some of it)
	$(PY) -m ruff check --select I --fix $(PATHS)
	$(PY) -m ruff format $(PATHS)
	@if [ -d console/node_modules ]; then $(NODE) npm --prefix console run --silent fix; fi

lock: ## Resolve pyproject.toml into requirements/dev.lock (UPGRADE=1: newest versions)
	@set -e; tool=$$(mktemp -d); trap 'rm -rf "$$tool"' EXIT; \
	$(PYTHON) -m venv "$$tool"; \
	"$$tool/bin/pip" install --quiet $(UV); \
	"$$tool/bin/uv" pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
	  --no-annotate --custom-compile-command 'make lock' $(if $(UPGRADE),--upgrade) \
	  --extra aws --extra moto --group dev --output-file $(LOCK) pyproject.toml

clean: ## Remove the environment and every cache
	rm -rf $(VENV) .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache build dist $(SITE_FILES) console/node_modules
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(DEPENDENCIES):
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or later is needed; set PYTHON=…")'
	$(PYTHON) -m venv --clear $(VENV)
	$(PY) -m pip install --quiet --disable-pip-version-check --only-binary :all: --require-hashes -r $(LOCK)
	@touch $@

$(PACKAGE): $(DEPENDENCIES)
	$(PY) -m pip install --quiet --disable-pip-version-check --no-index --no-deps --no-build-isolation -e .
	@touch $@

# Not `npm ci`: it wants the builds for every platform in the lock, and some registries only have those for their own.
$(CONSOLE_TOOLS): | $(DEPENDENCIES)
	$(NODE) npm install --prefix console --no-save --ignore-scripts --loglevel=error
	@touch $@

$(SITE): $(PACKAGE) $(CONSOLE_TOOLS)
	@mkdir -p build
	@rm -f build/site-*
	$(NODE) npm --prefix console run --silent build -- --logLevel=warn
	@touch $@

# The AWS deployment: what the CDK app in infra/ needs, and its commands.

NODE_TOOLS := infra/node_modules/tools-$(call checksum,infra/package.json infra/package-lock.json)
VENDOR := build/vendor-$(call checksum,layers/vendor/requirements.txt pyproject.toml)
CDK := $(PY) -m infra.node cdk
ON_LAMBDA := --python-version 3.13 --implementation cp --platform manylinux2014_aarch64 --platform manylinux_2_28_aarch64

.PHONY: synth deploy destroy vendor lock-vendor

test soak: $(NODE_TOOLS) $(VENDOR) $(SITE)

synth: $(PACKAGE) $(NODE_TOOLS) $(VENDOR) $(SITE) ## Write the CloudFormation templates to cdk.out (ARGS="-c shards=16")
	$(CDK) synth --quiet $(ARGS)

deploy: $(PACKAGE) $(NODE_TOOLS) $(VENDOR) $(SITE) ## Deploy both stacks to the AWS account of your credentials (ARGS="-c name=…")
	$(CDK) deploy --all $(ARGS)

destroy: $(PACKAGE) $(NODE_TOOLS) $(VENDOR) $(SITE) ## Remove the stack without data; docs/operating.md says how to remove the other
	$(CDK) destroy '*App' $(ARGS)

vendor: $(VENDOR) ## Put the third-party code of the Lambda functions into build/vendor, without Docker

lock-vendor: ## Pin the third-party code of the functions and the agent, in the versions of requirements/dev.lock
	@set -e; tool=$$(mktemp -d); trap 'rm -rf "$$tool"' EXIT; \
	$(PYTHON) -m venv "$$tool"; \
	"$$tool/bin/pip" install --quiet $(UV); \
	compile="$$tool/bin/uv pip compile --quiet --python-version 3.13 --generate-hashes --no-emit-index-url --no-annotate \
	  --constraints $(LOCK) --custom-compile-command"; \
	$$compile 'make lock-vendor' --python-platform aarch64-manylinux2014 --no-emit-package boto3 \
	  --no-emit-package botocore --no-emit-package s3transfer --no-emit-package urllib3 \
	  --output-file layers/vendor/requirements.txt layers/vendor/requirements.in; \
	$$compile 'make lock-vendor' --python-platform aarch64-manylinux2014 --extra aws --group pyproject.toml:build \
	  --output-file functions/agent/requirements.txt pyproject.toml

$(NODE_TOOLS): | $(DEPENDENCIES)
	$(PY) -m infra.node npm ci --prefix infra --ignore-scripts
	@touch $@

# With the metadata of our own package, so that the layer tells which release it belongs to.
$(VENDOR): | $(DEPENDENCIES)
	rm -rf build/vendor build/vendor-* build/own
	$(PY) -m pip install --quiet --disable-pip-version-check --no-compile --no-deps --only-binary :all: --require-hashes \
	  $(ON_LAMBDA) --target build/vendor/python -r layers/vendor/requirements.txt
	$(PY) -m pip install --quiet --disable-pip-version-check --no-compile --no-deps --no-index --no-build-isolation \
	  --target build/own .
	mv build/own/sweephand-*.dist-info build/vendor/python
	find build/vendor -depth -type d '(' -name tests -o -name bin ')' -exec rm -rf {} +
	find build/vendor -type f '(' -name RECORD -o -name direct_url.json -o -name REQUESTED ')' -delete
	rm -rf build/own
	@touch $@
