# One word for each thing to do. `make demo` and `make test` set up what they need by themselves.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SOURCES := $(shell find rust -path rust/fuzz -prune -o '(' -name '*.rs' -o -name Cargo.toml ')' -print) Cargo.toml Cargo.lock
# Hundreds of processes of a test run import the package and the tests: each would compile them anew.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup demo demo-docker demo-episodes test test-rust test-python soak coverage check generate lock deny audit blocks docs man fuzz sanitize bench evidence wheel clean

help: ## Show this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

setup: $(VENV)/.requirements $(VENV)/.built $(VENV)/.newest $(VENV)/docs/.made ## Install the packages needed, make the virtual environment, build the extension

# What the demo needs comes first, and is all that `make demo` installs.
$(VENV)/.demo-packages: tools/packages-demo.txt tools/install-packages
	@tools/install-packages tools/packages-demo.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "Python 3.11 or newer is needed; this is $$($(PYTHON) --version). Set PYTHON=..." >&2; exit 1; }
	@command -v cargo >/dev/null || { echo "A Rust toolchain is needed: https://rustup.rs" >&2; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/.packages: tools/packages.txt $(VENV)/.demo-packages
	@tools/install-packages tools/packages.txt
	@touch $@

# pip installs the dependencies, and those of the named extras, or of all of them.
REQUIRE = $(BIN)/python -c 'import sys, tomllib; p = tomllib.load(open("pyproject.toml", "rb"))["project"]; e = p["optional-dependencies"]; \
	print("\n".join([*p["dependencies"], *(r for extra in sys.argv[1:] or e for r in e[extra])]))'
INSTALL = $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint tools/constraints.txt

$(VENV)/.demo-requirements: pyproject.toml tools/constraints.txt $(VENV)/.demo-packages
	@echo "Installing Python packages"
	@$(REQUIRE) cli >$(VENV)/demo-requirements.txt
	@$(INSTALL) --requirement $(VENV)/demo-requirements.txt maturin
	@touch $@

$(VENV)/.requirements: $(VENV)/.packages $(VENV)/.demo-requirements
	@echo "Installing the Python packages of all extras"
	@$(REQUIRE) >$(VENV)/requirements.txt
	@$(INSTALL) --requirement $(VENV)/requirements.txt
	@touch $@

# google-adk and inspect-ai hold these back; the tests that use them run once more with the newest.
$(VENV)/.newest: tools/beside $(VENV)/.requirements
	@tools/beside $(VENV)/newest boto3 google-genai websockets
	@touch $@

$(VENV)/.built: $(VENV)/.demo-requirements $(SOURCES)
	@echo "Building the extension (a minute or two the first time)"
	@PIP_QUIET=1 $(BIN)/maturin develop --release --quiet
	@touch $@

demo: $(VENV)/.built ## Drive real applications on a virtual display, and leave a page of the run in demo-out/
	@$(BIN)/python demo/run.py

demo-docker: setup ## The same in a hardened container, whose image it builds; frames in demo-docker-out/
	@$(BIN)/deskhand image build desktop
	@$(BIN)/python demo/run.py --docker deskhand/desktop demo-docker-out
	@$(BIN)/python demo/container.py

demo-episodes: setup ## Every task with its oracle and without acting, on a pool of desktops; a report in demo-episodes-out/
	@$(BIN)/python demo/episodes.py

# Tests wait for programs most of the time: seven processes keep two processors busy. No more on a larger machine, so that they are
# beside as many others everywhere. Each file stays in one process, for what its tests share.
PYTEST := $(BIN)/python -m pytest -q -n 7 --dist loadfile --no-loadscope-reorder
# The tests in Rust wait for the time limits of hostile servers: those in Python run meanwhile.
test: setup ## Run all tests but the long series
	@$(MAKE) --no-print-directory --jobs=2 test-rust test-python

# What they build gets no tokens of make's jobserver.
test-rust test-python: export MAKEFLAGS =
test-rust:
	cargo test --workspace --quiet

test-python:
	$(PYTEST) -m "not soak"

soak: setup ## Run the long series: repetitions, other versions of libraries, every application
	$(PYTEST) -m soak $(shell grep -rl --include='test_*.py' 'mark\.soak\|import soaked' tests)

coverage: setup ## Which lines of the package the unit tests run; pages in target/coverage/html/
	@mkdir -p target/coverage
	$(BIN)/python -m coverage run -m pytest -q tests/unit
	$(BIN)/python -m coverage report
	@$(BIN)/python -m coverage html --quiet

check: setup ## Formatting, lints, types (of the sources, of the wheel and of the pages), stubs, generated files
	$(BIN)/ruff format --check python bench tests tools demo examples
	$(BIN)/ruff check python bench tests tools demo examples
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	tools/check-wheel
	tools/check-javascript
	$(BIN)/python tools/generate_aio.py --check
	cargo fmt --all --check
	cargo fmt --manifest-path rust/fuzz/Cargo.toml --check
	cargo clippy --workspace --all-targets --quiet -- -D warnings
	cargo clippy --manifest-path rust/fuzz/Cargo.toml --target-dir target --quiet -- -D warnings
	$(BIN)/codespell python bench rust tests tools demo examples docs .github *.md
	$(BIN)/zizmor --offline --quiet .github
	$(BIN)/check-jsonschema --quiet --builtin-schema vendor.github-workflows .github/workflows/*.yml
	$(BIN)/check-jsonschema --quiet --builtin-schema vendor.github-issue-forms .github/ISSUE_TEMPLATE/*.yml
	$(BIN)/check-jsonschema --quiet --builtin-schema vendor.dependabot .github/dependabot.yml

generate: setup ## Write the generated files anew
	$(BIN)/python tools/generate_aio.py

blocks: setup ## Measure each building block of the imaging engine and of the X11 connection, beside what none gets below
	cargo bench --package deskhand-imaging --bench blocks
	cargo bench --package deskhand-capture --bench connection

# The generator of the site, which shares no package with ours.
$(VENV)/docs/.made: tools/docs/requirements.txt $(VENV)/.packages
	@rm -rf $(VENV)/docs
	@$(PYTHON) -m venv $(VENV)/docs
	@$(VENV)/docs/bin/python -m pip install --quiet --no-deps --requirement tools/docs/requirements.txt
	@touch $@

docs: setup ## Build the documentation site in target/docs/site/ and the manual pages in target/man/
	@$(BIN)/python -m tools.docs --site target/docs --man target/man
	@cd target/docs && ../../$(VENV)/docs/bin/zensical build --strict --clean --config-file mkdocs.yml
	@echo "Open target/docs/site/index.html"

man: setup ## Write the manual pages of all commands into target/man/
	@$(BIN)/python -m tools.docs --man target/man

lock: ## Take the newest versions of all that `make setup` and `make docs` install (needs a network)
	@test -x $(VENV)/lock/bin/uv || { $(PYTHON) -m venv $(VENV)/lock && $(VENV)/lock/bin/python -m pip install --quiet uv; }
	$(VENV)/lock/bin/uv pip compile --quiet --upgrade --universal --python-version 3.11 --all-extras --strip-extras --no-annotate \
		--custom-compile-command "make lock" --output-file tools/constraints.txt pyproject.toml
	$(VENV)/lock/bin/uv pip compile --quiet --upgrade --universal --python-version 3.11 --group docs --no-annotate \
		--custom-compile-command "make lock" --output-file tools/docs/requirements.txt

deny: ## Licences, sources and versions of all crates (needs cargo-deny)
	@command -v cargo-deny >/dev/null || { echo "cargo-deny is needed: cargo install --locked cargo-deny" >&2; exit 1; }
	cargo deny check licenses bans sources

audit: setup ## Known vulnerabilities of all crates and Python packages (needs cargo-deny and a network)
	@command -v cargo-deny >/dev/null || { echo "cargo-deny is needed: cargo install --locked cargo-deny" >&2; exit 1; }
	cargo deny check advisories
	@test -x $(VENV)/audit/bin/pip-audit || \
		{ $(PYTHON) -m venv $(VENV)/audit && $(VENV)/audit/bin/python -m pip install --quiet pip-audit; }
	@$(BIN)/python -m pip freeze --exclude-editable >$(VENV)/installed.txt
	$(VENV)/audit/bin/pip-audit --strict --disable-pip --no-deps --requirement $(VENV)/installed.txt

FUZZ_SECONDS ?= 60
fuzz: setup ## Fuzz the imaging engine, the VNC parser and the X11 connection, FUZZ_SECONDS (60) for each target
	tools/fuzz $(FUZZ_SECONDS)

sanitize: setup ## Run the unsafe code under the address sanitizer, and the binding under valgrind
	tools/sanitize

bench: setup ## Measure beside all peers, which it installs; writes evidence/bench.* and the tables of docs/benchmarks.md
	tools/peers
	$(BIN)/python -m bench --json evidence/bench.json --plot evidence/bench.svg --readme docs/benchmarks.md

evidence: setup ## The long proofs that the tests only sample; results under evidence/
	tools/evidence

wheel: setup ## Build a wheel into dist/
	$(BIN)/maturin build --release --quiet --out dist

clean: ## Remove everything that was made
	rm -rf $(VENV) target dist demo-out demo-docker-out demo-episodes-out
