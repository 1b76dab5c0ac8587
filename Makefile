# Penstock. `make help` lists the targets; each one installs what it needs.
VENV   := .venv
PYTHON := $(VENV)/bin/python
READY  := $(VENV)/.ready
IMAGES  = $(if $(PUSH_TO),--prefix $(PUSH_TO)/ --push) $(if $(BUILDER),--builder $(BUILDER)) $(if $(TAG),--tag $(TAG)) $(if $(SOURCE),--source $(SOURCE))

# with this variable, each process would compile all Python modules again: a third of its startup time
unexport PYTHONDONTWRITEBYTECODE

# pages and other texts for users that tools.plain_words checks
PAGE = services/console/page
CHART = charts/penstock
PLAIN = README.md CHANGELOG.md CONTRIBUTING.md $(wildcard docs/*.md docs/*/*.md docs/*/*/*.md protos/*.md) \
        $(wildcard $(PAGE)/*.js $(PAGE)/components/*.js $(PAGE)/views/*.js) \
        $(CHART)/values.yaml $(CHART)/templates/NOTES.txt $(CHART)/files/rules/alerts.yaml

.PHONY: help up test unit check slow-tests lint faults bench lock vendor clean crds chart-docs pictures metrics-docs runbooks docs cli-reference settings-docs analytics-docs system
.PHONY: jars objects collector kubernetes kubernetes-clients kubernetes-node kubernetes-lock node-possible images images-base e2e

help:            ## list the targets
	@sed -n 's/^\([a-z0-9-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 17

up: $(READY)     ## run every edge and the console with an embedded store; its data is kept in ./penstock-data
	$(VENV)/bin/penstock up

test: $(READY) system jars kubernetes objects collector lint unit  ## run lint, then every test but those of make e2e

# REST=1 (for `make test e2e`): low-priority tests run during e2e instead, where processors are idle
unit: $(READY) jars  ## run every test of make test, without lint
	tools/unit $(PYTHON) $(if $(REST),first)

check: $(READY) lint  ## run before each commit: lint, and quick tests that need only Redis; 4 minutes on two cores
	tools/system check
	tools/check $(PYTHON)

slow-tests: $(READY)  ## update the list of tests that make check skips, from the reports of a full run in JUNIT=FOLDER
	$(PYTHON) -m tools.slow_tests $(JUNIT) > tests/slow.txt.new
	mv tests/slow.txt.new tests/slow.txt

lint: $(READY)   ## run ruff, mypy --strict, import contracts, and spelling checks of the documentation and the console's page
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy
	$(VENV)/bin/lint-imports
	@$(PYTHON) -m tools.plain_words $(PLAIN)
	$(VENV)/bin/codespell *.md docs charts protos services/console/page tests/*/README.md mkdocs.yml

faults: $(READY) system  ## run the random kill tests SEEDS times (default 1); FAULT_SEED=N is the first seed
	$(PYTHON) -m tests.faults tmq $(SEEDS)
	$(PYTHON) -m tests.faults text $(SEEDS)
	$(PYTHON) -m tests.faults rqp $(SEEDS)
	$(PYTHON) -m tests.faults ring $(SEEDS)

bench: $(READY)  ## run the benchmarks, with other brokers for comparison; writes a table, PNG and JSON to benchmarks/results
	tools/system bench
	$(PYTHON) -m benchmarks

lock: $(READY)   ## update the requirements files with pinned versions and hashes
	tools/lock

vendor: $(READY) ## update third-party files of the console's page from npm; versions are in tools/vendor.py
	$(PYTHON) -m tools.vendor

# installs Debian packages that the tests need: Redis, a C compiler, `ip`, Java, Chromium
system:
	tools/system test

crds: $(READY)   ## generate the chart's CustomResourceDefinitions and the field tables of docs/kubernetes.md from the models
	PYTHONPATH=operator $(PYTHON) -m penstock_operator.documents.crds charts/penstock/files/crds
	PYTHONPATH=operator $(PYTHON) -m penstock_operator.documents.reference docs/kubernetes.md

pictures: $(READY)  ## take the documentation's screenshots of the console, from penstock up with traffic; 17 minutes
	$(PYTHON) -m tests.console.page.pictures docs/pictures/console --docs

metrics-docs: $(READY)  ## generate the table in docs/metrics.md from the code
	PYTHONPATH=operator $(PYTHON) -m tools.metrics_docs docs/metrics.md

runbooks: $(READY)  ## generate parts of runbooks, their index, and the alerts for outside Kubernetes from the chart's rules
	$(PYTHON) -m tools.runbooks charts/penstock/files/rules/alerts.yaml docs/runbooks
	$(PYTHON) -m tools.outside_rules charts/penstock/files/rules/alerts.yaml docs/examples/prometheus/alerts.yaml

chart-docs: $(READY)  ## generate the chart's table of values, dashboards and Redis ACL of edges
	$(PYTHON) -m tools.chart_docs charts/penstock
	$(PYTHON) -m tools.dashboards charts/penstock/files/dashboards
	$(VENV)/bin/penstock store rights | sed 's/^ACL SETUSER edge //' > charts/penstock/files/edge.acl

docs: $(READY)  ## build the documentation site in ./site; warnings are errors
	NO_MKDOCS_2_WARNING=1 $(PYTHON) -m mkdocs build --strict --quiet
	@echo "site/: python3 -m http.server --directory site, then http://127.0.0.1:8000"

cli-reference: $(READY)  ## generate docs/reference/cli.md from the commands
	$(PYTHON) -m services.cli.reference.commands_table > docs/reference/cli.md.new
	mv docs/reference/cli.md.new docs/reference/cli.md

analytics-docs: $(READY)  ## generate the tables of docs/analytics.md from the schemas
	$(PYTHON) -m tools.analytics_docs docs/analytics.md

settings-docs: $(READY)  ## generate docs/settings.md from the settings
	$(PYTHON) -m services.cli.reference.settings_table > docs/settings.md.new
	mv docs/settings.md.new docs/settings.md

jars: $(READY)   ## install the jars that analytics needs beside PySpark's own; needs Java
	@$(PYTHON) -m services.analytics.spark.jars

kubernetes: $(READY)  ## install what tests with an API server need: etcd, and programs that are built once, in minutes
	tools/system kubernetes
	$(PYTHON) -m tools.kubernetes apiserver

objects: $(READY)  ## build an S3 object store for tests, once
	$(PYTHON) -m tools.kubernetes objects

collector: $(READY)  ## build the OpenTelemetry collector for tests, once
	$(PYTHON) -m tools.kubernetes collector

kubernetes-clients: $(READY)
	$(PYTHON) -m tools.kubernetes clients

kubernetes-node: kubernetes  ## also install what a cluster node for tests needs
	tools/system node
	$(PYTHON) -m tools.kubernetes node

kubernetes-lock: $(READY)  ## update the Go modules of these programs from tools/kubernetes/programs.py
	$(PYTHON) -m tools.kubernetes.lock

node-possible:
	tools/node-possible

# with KUBECONFIG, the images come from a registry, and no node is started here
e2e: $(if $(KUBECONFIG),$(READY) kubernetes-clients,node-possible $(READY) system kubernetes-node)  ## build and run the images, and test everything on a one-node cluster; KUBECONFIG=FILE uses another cluster
	tools/e2e $(PYTHON)

images: $(READY) ## build the images with docker or buildah; options: TARGETS, BASE (base image), BUILDER, TAG, PUSH_TO (registry), SOURCE (URL)
	$(PYTHON) -m tools.images $(if $(BASE),--base $(BASE)) $(IMAGES) $(TARGETS)

images-base: $(READY)  ## build them on a base image made of Debian packages, where none can be pulled
	tools/system node
	$(PYTHON) -m tools.images --own-base $(IMAGES) $(TARGETS)

$(READY): requirements/dev.txt pyproject.toml
	tools/venv $(VENV)
	@touch $@

clean:           ## remove the virtual environment, the site and caches, but not penstock-data
	rm -rf $(VENV) site .mypy_cache .ruff_cache .pytest_cache .hypothesis
