# Two commands for newcomers: `make demo` and `make test`. Each sets up whatever it needs, once.
.PHONY: demo page wheel tarball pictures test test-python test-adk test-clients test-faults test-page test-browser test-next test-matrix setup lint typecheck check-core \
	faults bench test-gemini constraints clean
.DELETE_ON_ERROR:
# Hundreds of processes import ADK: without bytecode each of them compiles it again.
unexport PYTHONDONTWRITEBYTECODE

PYTHON ?= python3
BIN := .venv/bin
RUN := PATH="$(CURDIR)/$(BIN):$$PATH"
# uv where it can be had, for speed; pip otherwise.
INSTALL := $(BIN)/uv pip install --compile-bytecode --python $(BIN)/python
FALLBACK := $(BIN)/python -m pip install
NPM_INSTALL := PATH="$(CURDIR)/$(BIN):$$PATH" npm install --no-audit --no-fund --ignore-scripts --no-save

# What the command serves at `/`. All of it is there when its first file is.
PAGE := src/adk_stream_protocol/demo/page/index.html
PAGE_SOURCES := $(shell find page/src page/scripts client/src -type f ! -name '*.test.*' 2>/dev/null) \
	$(wildcard page/*.json page/*.html page/vite.config.ts)

# The chat API works without the page, and then `/` says how to use it.
demo: .venv/.ready
	@$(MAKE) --no-print-directory page || echo "== the page could not be built: going on without it"
	@$(BIN)/adk-stream demo $(ARGS)

page: $(PAGE)

wheel: $(PAGE)
	@$(BIN)/python -m hatchling build

# The npm package, beside the wheel.
tarball: client/node_modules/.ready
	@mkdir -p dist
	@cd client && PATH="$(CURDIR)/$(BIN):$$PATH" npm pack --silent --pack-destination ../dist

setup: .venv/.ready tests/conformance/node_modules/.ready client/node_modules/.ready page/node_modules/.ready \
	tests/browser/node_modules/.ready

# Four at a time on two cores, the longest first: they wait for processes, databases and browsers half of the time.
test: setup page
	@echo "== tests, four parts at a time; each tells when it is done"
	@$(MAKE) --no-print-directory -j4 --output-sync=target \
		test-faults test-python test-adk check-core test-clients test-page test-browser lint

test-python: setup page
	@$(RUN) $(BIN)/python -m pytest -q --ignore=tests/protocol --ignore=tests/conformance --ignore=tests/faults \
		--ignore=tests/browser --ignore=tests/next --ignore=tests/adk --ignore=tests/store --ignore=tests/live

# Real runs of ADK in both modes, and the stores.
test-adk: setup page
	@$(RUN) $(BIN)/python -m pytest -q tests/adk tests/store tests/live

# The page's own tests; it is built already, and others read it meanwhile.
test-page: setup page
	@cd page && PATH="$(CURDIR)/$(BIN):$$PATH" npm run --silent typecheck
	@cd page && PATH="$(CURDIR)/$(BIN):$$PATH" npm run --silent test:unit
	@cd page && PATH="$(CURDIR)/$(BIN):$$PATH" node scripts/check-size.ts

# The page in a real Chromium.
test-browser: setup page
	@cd tests/browser && PATH="$(CURDIR)/$(BIN):$$PATH" npm test --silent

# What the README shows is what the tests have seen.
pictures: test-browser
	@for pair in approval:approval-desktop-light inspector:inspector-desktop-light markdown:markdown-desktop-dark \
		live:live-desktop-dark; do \
		cp tests/browser/screenshots/$${pair#*:}.png docs/pictures/$${pair%%:*}.png; done

# Races, kills, drops and generated cases at a tenth of their figures.
test-faults: setup
	@$(RUN) $(BIN)/python -m pytest -q tests/faults

# Behind the rewrite of a real Next.js server. It takes a minute and 350 MB, so `make test` goes without.
test-next: setup tests/next/node_modules/.ready
	@$(RUN) $(BIN)/python -m pytest -q tests/next

# The fast part with each supported release of ADK and Python, for minutes each. Environments are kept in .matrix.
test-matrix: setup page
	@$(BIN)/python tests/matrix/run.py $(ARGS)

# With the real clients in Node: those of the AI SDK, and our own.
test-clients: setup
	@$(RUN) $(BIN)/python -m pytest -q tests/conformance
	@cd client && PATH="$(CURDIR)/$(BIN):$$PATH" npm test --silent

# The pure core answers for every branch of its own, from its own tests alone. What explores it runs by itself: tracing
# branches doubles its time.
EXPLORATIONS := tests/protocol/test_stream_walks.py $(wildcard tests/protocol/*_explored.py)
check-core: setup
	@echo "== tests of the core, with branch coverage"
	@$(BIN)/python -m pytest -q $(EXPLORATIONS)
	@$(BIN)/coverage erase
	@$(BIN)/coverage run --branch --source=src/adk_stream_protocol/protocol -m pytest -q tests/protocol \
		$(addprefix --ignore=,$(EXPLORATIONS))
	@$(BIN)/coverage report --fail-under=100 --skip-covered

lint: setup
	@echo "== lint, types, import law"
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(RUN) $(BIN)/pyright
	@$(BIN)/lint-imports
	@cd tests/conformance && PATH="$(CURDIR)/$(BIN):$$PATH" npm run --silent typecheck

# The promised figures in full size; `make test` runs them at a tenth. Then every small mistake in the safety core.
faults: setup
	@$(RUN) FULL_SIZE=1 $(BIN)/python -m pytest -q -m figures
	@$(RUN) DIRECT_TEXT=off $(BIN)/python -m pytest -q tests/conformance tests/adk tests/live \
		--deselect tests/adk/test_direct_agents.py -k "not go_past_adk and not first_piece and not begins_in_adk and not first_word"
	@$(MAKE) --no-print-directory test-next
	@$(RUN) $(BIN)/python tests/mutation/mutate.py approvals states call_keys chains digest call_ids seals

# Leaves its figures in .bench/ and says what got slower since the last time.
bench: .bench-venv/.ready
	@mkdir -p .bench
	@test ! -f .bench/cost.json || mv .bench/cost.json .bench/cost.before.json
	@.bench-venv/bin/python benchmarks/run.py --json .bench/cost.json $(ARGS)
	@.bench-venv/bin/python benchmarks/plot.py .bench/cost.json docs/pictures/cost.svg
	@test ! -f .bench/cost.before.json || $(BIN)/python benchmarks/compare.py .bench/cost.before.json .bench/cost.json || true
	@.bench-venv/bin/python benchmarks/memory.py --json .bench/memory.json
	@.bench-venv/bin/python benchmarks/load.py --json .bench/load.json
	@$(BIN)/python benchmarks/long_chat.py
	@$(BIN)/python benchmarks/chat_length.py
	@$(BIN)/python benchmarks/live_audio.py
	@$(BIN)/python benchmarks/live_text.py
	@$(BIN)/python benchmarks/chat_list.py
	@$(BIN)/python benchmarks/neighbours.py

test-gemini: setup
	@$(RUN) $(BIN)/python -m pytest -q -rs tests/gemini

.venv/.ready: pyproject.toml constraints.txt
	@echo "== setting up .venv"
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@$(FALLBACK) --quiet --disable-pip-version-check uv || true
	$(INSTALL) -c constraints.txt -e '.[dev]' || $(FALLBACK) -c constraints.txt -e '.[dev]'
	@touch $@

# From the lock, but not `npm ci`: that refuses a lock whose optional binaries of other platforms a mirror lacks.
tests/conformance/node_modules/.ready: tests/conformance/package.json tests/conformance/package-lock.json .venv/.ready
	@echo "== setting up the AI SDK releases of the conformance tests"
	cd tests/conformance && $(NPM_INSTALL)
	@touch $@

client/node_modules/.ready: client/package.json client/package-lock.json .venv/.ready
	@echo "== setting up the npm package"
	cd client && $(NPM_INSTALL)
	@touch $@

page/node_modules/.ready: page/package.json page/package-lock.json | .venv/.ready
	@echo "== setting up what the page is built with"
	cd page && $(NPM_INSTALL)
	@touch $@

tests/browser/node_modules/.ready: tests/browser/package.json tests/browser/package-lock.json | .venv/.ready
	@echo "== setting up the browser of the tests"
	cd tests/browser && $(NPM_INSTALL)
	@touch $@

tests/next/node_modules/.ready: tests/next/package.json tests/next/package-lock.json | .venv/.ready
	@echo "== setting up Next.js"
	cd tests/next && $(NPM_INSTALL)
	@touch $@

$(PAGE): $(PAGE_SOURCES) page/node_modules/.ready
	@echo "== building the page"
	cd page && PATH="$(CURDIR)/$(BIN):$$PATH" npm run --silent build

.bench-venv/.ready: pyproject.toml benchmarks/requirements.txt .venv/.ready
	@echo "== setting up .bench-venv, with the peers"
	@test -x .bench-venv/bin/python || $(PYTHON) -m venv .bench-venv
	$(BIN)/uv pip install --python .bench-venv/bin/python -r benchmarks/requirements.txt -e . \
		|| .bench-venv/bin/python -m pip install -r benchmarks/requirements.txt -e .
	@touch $@

constraints: .venv/.ready
	$(BIN)/uv pip compile pyproject.toml --all-extras --universal --no-annotate --no-header --no-emit-index-url \
		--upgrade -o constraints.txt

clean:
	rm -rf .venv .bench-venv .matrix $(dir $(PAGE)) tests/conformance/node_modules client/node_modules page/node_modules tests/browser/node_modules \
		tests/next/node_modules tests/next/.next
