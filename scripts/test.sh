#!/usr/bin/env bash
# `make test` and `make check`: runs every check to its end, also when one before it failed, and sums up.
#
#   scripts/test.sh all     format, lints, all tests, doc tests, docs, layers, licences, pages, acceptance ids, README,
#                           the live page in a browser, the API against its description, the instructions of the
#                           hot paths, conformance counts
#   scripts/test.sh fast    format, lints, the tests that take little time, layers, licences, pages, acceptance ids
#
# What a check needs and is not there is installed by its package name where that is allowed, else skipped by name.
# With TIDEGATE_REQUIRE=1 nothing may be skipped. The last line is `N passed, M failed`: every test counts as one,
# and so does every other check.
set -uo pipefail
cd "$(dirname "$0")/.."

scope=${1:?usage: scripts/test.sh all|fast}
logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT
export CARGO_TERM_COLOR=${CARGO_TERM_COLOR:-auto}

passed=0
failed=0
table=()
runner=()
skipped=()

# --- what has to be there ---

may_install() { [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; }

# need TOOL PACKAGES WHY: true if the tool is there, or could be installed.
need() {
  command -v "$1" >/dev/null && return 0
  if may_install; then
    echo "Installing $2: $3"
    local packages
    read -ra packages <<<"$2"
    { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${packages[@]}"; } \
      >"$logs/apt" 2>&1 </dev/null || tail -n 5 "$logs/apt"
  fi
  command -v "$1" >/dev/null
}

# must TOOL PACKAGES WHY: ends everything if the tool is missing.
must() {
  need "$@" && return 0
  echo "error: \`$1\` is missing ($3): install $2 and try again" >&2
  echo "0 passed, 1 failed"
  exit 1
}

# wants TOOL PACKAGES WHY: a missing tool skips something, loudly; where nothing may be skipped it is a failure.
wants() {
  need "$@" && return 0
  if [ "${TIDEGATE_REQUIRE:-}" = 1 ]; then
    note failed "tool $1" 0
    echo "error: \`$1\` is required and missing: $3" >&2
  else
    skipped+=("$1 is not installed: $3")
  fi
}

# --- running checks ---

# note WORD NAME SECONDS: counts a check.
note() {
  case $1 in
    passed) passed=$((passed + 1)) ;;
    failed) failed=$((failed + 1)) ;;
  esac
  table+=("$(printf '%-7s %-14s %4d s' "$1" "$2" "$3")")
}

# run LOG COMMAND...: runs it with its output shown and kept.
run() {
  local log=$1
  shift
  "$@" 2>&1 </dev/null | tee "$logs/$log"
  return "${PIPESTATUS[0]}"
}

# check NAME COMMAND...: a check that passes or fails as a whole.
check() {
  local name=$1 began=$SECONDS word=passed
  shift
  echo "== $name"
  run "$name" "$@" || word=failed
  note "$word" "$name" $((SECONDS - began))
}

# tests NAME COMMAND...: a check made of tests, each of which counts.
tests() {
  local name=$1 began=$SECONDS word=passed ok bad
  shift
  echo "== $name"
  run "$name" "$@" || word=failed
  # Without colours, for reading.
  sed -i 's/\x1b\[[0-9;]*m//g' "$logs/$name"
  ok=$(counted "$name" passed)
  bad=$(counted "$name" failed)
  # A run that failed and counts no failed test did not come as far as the tests.
  if [ "$word" = failed ] && [ "$bad" = 0 ]; then bad=1; fi
  passed=$((passed + ok))
  failed=$((failed + bad))
  table+=("$(printf '%-7s %-14s %4d s   %d passed, %d failed' "$word" "$name" $((SECONDS - began)) "$ok" "$bad")")
  mapfile -t -O "${#runner[@]}" runner < <(summary "$name")
}

# The runner's own summary: one line of cargo-nextest, or the lines of cargo test.
summary() {
  if grep -q '^ *Summary \[' "$logs/$1"; then
    grep '^ *Summary \[' "$logs/$1" | tail -n 1
  else
    grep '^test result:' "$logs/$1" | grep -v ' 0 passed; 0 failed; 0 ignored'
  fi
}

counted() {
  summary "$1" | grep -oE "[0-9]+ $2" | awk '{ sum += $1 } END { print sum + 0 }'
}

# The conformance sets that are counted.
sets=(betsy engines invalid dmn-tck)

# count SET: `make SET`, from what the tests were built with.
count() {
  local program=${1//-/_}
  if [ ! -d ../shared/conformance ]; then
    echo "SKIPPED $1: ../shared/conformance is not there"
    [ "${TIDEGATE_REQUIRE:-}" != 1 ]
    return
  fi
  cargo build --locked -q --workspace --example "$program" && "${CARGO_TARGET_DIR:-target}/debug/examples/$program"
}

# --- the checks ---

must cargo "Rust (rustup.rs)" "it builds everything"
must cc "gcc libc6-dev" "SQLite is built from its source"
must python3 python3 "the checks in scripts/ are written in it"
if ! cargo fmt --version >/dev/null 2>&1 || ! cargo clippy --version >/dev/null 2>&1; then
  rustup component add rustfmt clippy
fi
if [ "$scope" = all ]; then
  # Passing tests are silent, so what they skip for want of data is said here.
  [ -d ../shared/conformance ] || skipped+=("every test on ../shared/conformance: the data is not there")
  wants strace strace "a test looks at the order of syncs through it"
  wants valgrind valgrind "the guard of the hot paths counts instructions with it"
fi

runs_nextest=false
if cargo nextest --version >/dev/null 2>&1; then runs_nextest=true; fi

check format cargo fmt --all --check
check layers scripts/check-layers.py
check dependencies scripts/deny.sh
check pages scripts/check-docs.py
check acceptance scripts/acceptance.py --check
check clippy cargo clippy --locked --workspace --all-targets -- -D warnings

if [ "$scope" = fast ]; then
  # Unit tests, and the tests of the two parts where most changes happen.
  fast=(--lib --bins --test traces --test diagnostics --test cycle --test lifecycle)
  if $runs_nextest; then
    tests fast-tests cargo nextest run --locked --workspace --no-fail-fast "${fast[@]}"
  else
    tests fast-tests cargo test --locked --workspace --no-fail-fast "${fast[@]}"
  fi
else
  if $runs_nextest; then
    tests tests cargo nextest run --locked --workspace --no-fail-fast
  else
    tests tests cargo test --locked --workspace --no-fail-fast --lib --bins --tests --examples
  fi
  tests doc-tests cargo test --locked --workspace --no-fail-fast --doc
  check docs env RUSTDOCFLAGS="-D warnings" cargo doc --locked --workspace --no-deps --lib
  check readme python3 scripts/readme-test.py
  check browser scripts/browser-test.sh
  check api scripts/api-test.sh
  if command -v valgrind >/dev/null; then check guard scripts/guard.py; fi
  for set in "${sets[@]}"; do check "$set" count "$set"; done
fi

# --- the sum ---

# What tests skipped because something was not there, by name.
mapfile -t -O "${#skipped[@]}" skipped < <(cat "$logs"/*tests "$logs/browser" "$logs/api" "$logs/guard" "${sets[@]/#/$logs/}" 2>/dev/null | grep -E '^ *SKIPPED ' | sort -u)

echo
echo "== summary"
printf '%s\n' "${table[@]}"
for line in "${skipped[@]}"; do echo "SKIPPED ${line#*SKIPPED }"; done
for set in "${sets[@]}"; do
  if [ -f "$logs/$set" ]; then grep "^$set:" "$logs/$set"; fi
done
# The seeds of the simulation are tests, fifty in each.
if [ -f "$logs/tests" ]; then
  held=$(grep 'the_laws_hold_in_seeds' "$logs/tests" | grep -cE ' PASS |\.\.\. ok$')
  echo "sim: $((held * 50)) seeds hold"
fi
for page in acceptance browser api guard; do
  if [ -f "$logs/$page" ]; then grep "^$page:" "$logs/$page"; fi
done
printf '%s\n' "${runner[@]}"
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
