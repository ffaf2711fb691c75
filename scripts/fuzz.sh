#!/usr/bin/env bash
# `make fuzz TARGET=feel SECONDS=60`: lets libFuzzer choose the input of one target of fuzz/src/target.rs.
#
# The stable compiler is enough: the instrumentation is a pass of LLVM that every compiler has. What is new to a target
# is kept in target/fuzz-corpus/TARGET, so that the next run goes on from there; an input that breaks one is written to
# target/fuzz-finds. Put it into fuzz/corpus/TARGET with the change that mends it: `make test` replays that folder.
set -euo pipefail
cd "$(dirname "$0")/.."

target=${1:?usage: scripts/fuzz.sh TARGET SECONDS}
seconds=${2:-60}
[ -d "fuzz/corpus/$target" ] || {
  echo "error: there is no target \`$target\`: expected one of $(ls fuzz/corpus | tr '\n' ' ')" >&2
  exit 2
}
# The routes bring the server with them, which takes minutes to build; the other targets do without.
features=(--no-default-features --features libfuzzer)
folder=target/fuzz
if [ "$target" = http ]; then
  features=(--features libfuzzer)
fi

host=$(rustc -vV | sed -n 's/^host: //p')
flags="-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
 -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
 -Cllvm-args=-sanitizer-coverage-trace-compares -Ccodegen-units=1"
# With a --target the flags do not reach build scripts and macros, which could not be linked with them.
RUSTFLAGS=$flags CARGO_TARGET_DIR=$folder cargo build --locked -q --profile fuzz --target "$host" \
  -p tidegate-fuzz --bin fuzz "${features[@]}"

more=()
case $target in
  bpmn) more=(crates/engine/tests/fixtures examples) ;;
  dmn) more=(crates/dmn/tests/data) ;;
esac
corpus=target/fuzz-corpus/$target finds=target/fuzz-finds
mkdir -p "$corpus" "$finds"
# The seeds come with the repository; what is found goes beside them, not into them.
began=$SECONDS
TIDEGATE_FUZZ=$target nice -n 19 "$folder/$host/fuzz/fuzz" "$corpus" "fuzz/corpus/$target" "${more[@]}" \
  -max_total_time="$seconds" -timeout=20 -rss_limit_mb=2048 -max_len="${MAX_LEN:-16384}" \
  -artifact_prefix="$finds/$target-" -print_final_stats=1 2>&1 | tee "target/fuzz-$target.log" |
  grep -vE '^#[0-9]+\s+(NEW|REDUCE|pulse|RELOAD)|NEW_FUNC' || true
status=${PIPESTATUS[0]}
executions=$(sed -n 's/^stat::number_of_executed_units: *//p' "target/fuzz-$target.log")
echo "fuzz: $target, $((SECONDS - began)) seconds, ${executions:-0} executions, exit $status"
exit "$status"
