# Penstock. Every target does its own set-up; `make help` lists them.
VENV   := .venv
PYTHON := $(VENV)/bin/python
READY  := $(VENV)/.ready
IMAGES  = $(if $(PUSH_TO),--prefix $(PUSH_TO)/ --push) $(if $(BUILDER),--builder $(BUILDER)) $(if $(TAG),--tag $(TAG)) $(if $(SOURCE),--source $(SOURCE))

# where this is set, each process compiles all of Python's modules again: a third of its start
unexport PYTHONDONTWRITEBYTECODE

# pages whose words are checked
PLAIN = README.md CHANGELOG.md CONTRIBUTING.md $(wildcard docs/*.md docs/*/*.md docs/*/*/*.md protos/*.md)

.PHONY: help up test unit check slow-tests lint faults bench lock vendor clean crds chart-docs pictures metrics-docs runbooks docs cli-reference system
.PHONY: objects collector kubernetes kubernetes-clients kubernetes-node kubernetes-lock node-possible images images-base e2e

help:            ## say what each target does
	@sed -n 's/^\([a-z0-9-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 17

up: $(READY)     ## set up, then run every edge with an embedded store; data stays in ./penstock-data
	$(VENV)/bin/penstock up

test: $(READY) system kubernetes objects collector lint unit  ## set up, check the style, the types and the layers, then run every test

# REST=1, of `make test e2e`: those that step back run beside e2e, where processors are idle
unit: $(READY)   ## only the tests
	tools/unit $(PYTHON) $(if $(REST),first)

check: $(READY) lint  ## before each commit: lint, and the quick tests that need no server but Redis; 4 minutes on two cores
	tools/system check
	tools/check $(PYTHON)

slow-tests: $(READY)  ## write the list of tests that `make check` leaves out anew, of the reports of a whole run: JUNIT=FOLDER
	$(PYTHON) -m tools.slow_tests $(JUNIT) > tests/slow.txt.new
	mv tests/slow.txt.new tests/slow.txt

lint: $(READY)   ## ruff, mypy --strict, import contracts, spelling of pages and of the console's page
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy
	$(VENV)/bin/lint-imports
	$(PYTHON) -m tools.plain_words $(PLAIN)
	$(VENV)/bin/codespell *.md docs charts protos services/console/page tests/*/README.md mkdocs.yml

faults: $(READY) system  ## kill everything at random, SEEDS=10 times; FAULT_SEED= says the first seed
	$(PYTHON) -m tests.faults tmq $(SEEDS)
	$(PYTHON) -m tests.faults text $(SEEDS)
	$(PYTHON) -m tests.faults rqp $(SEEDS)
	$(PYTHON) -m tests.faults ring $(SEEDS)

bench: $(READY)  ## measure beside the peers; table, PNG and JSON in benchmarks/results
	tools/system bench
	$(PYTHON) -m benchmarks

lock: $(READY)   ## write the pinned, hashed requirement files anew
	tools/lock

vendor: $(READY) ## take what the console's page has of others out of their npm packages anew; versions are in tools/vendor.py
	$(PYTHON) -m tools.vendor

system:          # what the tests need beside Python: Debian's Redis, a C compiler, `ip`, Java
	tools/system test

crds: $(READY)   ## write the chart's CustomResourceDefinitions and their tables of fields anew, after the models were changed
	PYTHONPATH=operator $(PYTHON) -m penstock_operator.documents.crds charts/penstock/files/crds
	PYTHONPATH=operator $(PYTHON) -m penstock_operator.documents.reference docs/kubernetes.md

pictures: $(READY)  ## take the documentation's pictures of the console anew, of a penstock up with traffic: 17 minutes
	$(PYTHON) -m tests.console.page.pictures docs/pictures/console --docs

metrics-docs: $(READY)  ## write the table in docs/metrics.md anew, after a metric was changed
	PYTHONPATH=operator $(PYTHON) -m tools.metrics_docs docs/metrics.md

runbooks: $(READY)  ## write what runbooks have of their alerts anew, their index, and the rules for outside Kubernetes, after a rule was changed
	$(PYTHON) -m tools.runbooks charts/penstock/files/rules/alerts.yaml docs/runbooks
	$(PYTHON) -m tools.outside_rules charts/penstock/files/rules/alerts.yaml docs/examples/prometheus/alerts.yaml

chart-docs: $(READY)  ## write what the chart has of elsewhere anew: its README's table of values, what edges may do in Redis; and its dashboards
	$(PYTHON) -m tools.chart_docs charts/penstock
	$(PYTHON) -m tools.dashboards charts/penstock/files/dashboards
	$(VENV)/bin/penstock store rights | sed 's/^ACL SETUSER edge //' > charts/penstock/files/edge.acl

docs: $(READY)  ## the documentation as a site, into ./site; a warning is an error
	NO_MKDOCS_2_WARNING=1 $(PYTHON) -m mkdocs build --strict --quiet
	@echo "site/: python3 -m http.server --directory site, then http://127.0.0.1:8000"

cli-reference: $(READY)  ## write docs/reference/cli.md anew, after commands or options were changed
	$(PYTHON) -m services.cli.reference.commands_table > docs/reference/cli.md

kubernetes: $(READY)  ## what tests on an API server need: etcd, and programs that are built once, which takes minutes
	tools/system kubernetes
	$(PYTHON) -m tools.kubernetes apiserver

objects: $(READY)  ## a store of objects that speaks S3, for tests; built once
	$(PYTHON) -m tools.kubernetes objects

collector: $(READY)  ## a collector of traces, for tests; built once
	$(PYTHON) -m tools.kubernetes collector

kubernetes-clients: $(READY)
	$(PYTHON) -m tools.kubernetes clients

kubernetes-node: kubernetes  ## what a node of a cluster needs beside that
	tools/system node
	$(PYTHON) -m tools.kubernetes node

kubernetes-lock: $(READY)  ## write the Go modules of these programs anew, after tools/kubernetes/programs.py was changed
	$(PYTHON) -m tools.kubernetes.lock

node-possible:
	tools/node-possible

# a cluster of somebody's own needs neither images of this machine nor the programs of a node
e2e: $(if $(KUBECONFIG),$(READY) kubernetes-clients,node-possible $(READY) system kubernetes-node)  ## build the images, run them, and all of it on a cluster of one node
	tools/e2e $(PYTHON)

images: $(READY) ## build the images, with docker or buildah; TARGETS= which, BASE= on what, PUSH_TO= to which registry they go
	$(PYTHON) -m tools.images $(if $(BASE),--base $(BASE)) $(IMAGES) $(TARGETS)

images-base: $(READY)  ## build them on a base made of Debian's packages, where no base can be pulled
	tools/system node
	$(PYTHON) -m tools.images --own-base $(IMAGES) $(TARGETS)

$(READY): requirements/dev.txt pyproject.toml
	tools/venv $(VENV)
	@touch $@

clean:           ## remove the virtual environment and caches (never penstock-data)
	rm -rf $(VENV) site .mypy_cache .ruff_cache .pytest_cache .hypothesis
