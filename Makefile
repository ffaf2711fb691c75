# Everything that a newcomer needs. `make help` lists it.

.DEFAULT_GOAL := help
.PHONY: help run test check fmt deny betsy engines invalid dmn-tck bench plots guard guard-baseline fuzz api-test coverage tsan loom mutants sim browser acceptance terror clean

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: ## Build, serve on 127.0.0.1:8088 with the trial handlers, deploy examples/ (Ctrl-C drains)
	@exec scripts/run.sh

test: ## Everything that must hold: format, lints, all tests, docs, layers, licences, README
	@exec scripts/test.sh all

check: ## The quick part of `make test`: format, lints, fast tests, layers, licences
	@exec scripts/test.sh fast

fmt: ## Format the source
	@cargo fmt --all

deny: ## Licences, banned crates and sources of the dependencies
	@exec scripts/deny.sh

betsy: ## How much of the betsy conformance set passes; the last line has the count
	@cargo run --locked -q -p tidegate-engine --example betsy

engines: ## How many of the processes of other engines behave as expected; the last line has the count
	@cargo run --locked -q -p tidegate-engine --example engines

invalid: ## How many hostile, borderline and wrong files get their verdict; the last line has the count
	@cargo run --locked -q -p tidegate --example invalid

dmn-tck: ## How many of the compatibility cases of DMN pass; the last line has the count
	@cargo run --locked -q -p tidegate-dmn --example dmn_tck

bench: ## A benchmark, for example `make bench W=W1` (options in O, as O="count=1000 seconds=1")
	@cargo build --locked --release -q -p tidegate-bench $(if $(filter W4 W5 W6,$(W)),-p tidegate-cli)
	@cargo run --locked --release -q -p tidegate-bench -- $(W) $(O)

plots: ## Draw docs/plots anew from the lines in docs/plots/lines.jsonl
	@scripts/plot.py docs/plots/lines.jsonl docs/plots

guard: ## Count the instructions of the hot paths; fails where they grew by a tenth
	@scripts/guard.py

guard-baseline: ## Write bench/guard/baseline.txt anew
	@scripts/guard.py --bless

api-test: ## The HTTP interface against its description, longer than in `make test` (SECONDS_EACH=n, SEED=n)
	@SECONDS_EACH=$${SECONDS_EACH:-180} EXAMPLES=$${EXAMPLES:-200} scripts/api-test.sh

fuzz: ## Let libFuzzer choose the input of a part: TARGET=bpmn, dmn, feel, http, journal, juel or snapshot; SECONDS=n
	@scripts/fuzz.sh "$(TARGET)" "$(or $(SECONDS),60)"

coverage: ## Which lines of engine, store and runtime the tests reach; fails below 80 % of a file
	@scripts/coverage.sh

tsan: ## The tests of gate and runtime under ThreadSanitizer (PACKAGES, FILTER)
	@scripts/races.sh

loom: ## Walk every interleaving of the gate (in a target folder of its own)
	@RUSTFLAGS="--cfg loom" CARGO_TARGET_DIR=target/loom cargo test --locked --release -p tidegate-gate --test gate_loom

mutants: ## Change what stops and recovers, line by line, and expect a test to fail (PART=gate or runtime)
	@exec scripts/mutants.sh

sim: ## Simulate the whole runtime under faults: `make sim SEEDS=2000 FROM=1`; the last line has the count
	@cargo run --locked -q -p tidegate-sim -- $(or $(SEEDS),300) $(or $(FROM),1)

browser: ## The live page in a real browser (fetches Chromium and playwright-core where it may)
	@scripts/browser-test.sh

acceptance: ## Write docs/acceptance.md: every acceptance id with its test
	@scripts/acceptance.py

terror: ## The real binary on hosts that fail it, then SIGTERM with 500 live instances, 50 rounds (ROUNDS=n)
	@cargo test --locked -q -p tidegate-cli --test broken_host --test kill -- --nocapture
	@ROUNDS=$${ROUNDS:-50} cargo test --locked -q -p tidegate-cli --test terror -- --nocapture

clean: ## Remove what was built; data directories stay
	@cargo clean
