#!/usr/bin/env bash
# `make tsan`: tests of the gate and the runtime under ThreadSanitizer, which sees two threads at the same memory without
# an order between them.
#
# PACKAGES and FILTER choose the tests. The sanitizer is an unstable flag of the compiler, so it is asked to take those
# (RUSTC_BOOTSTRAP). The standard library is built with it, from the compiler's source: over one that is not, every
# channel of the standard library looks like a race, that of the test runner first.
set -euo pipefail
cd "$(dirname "$0")/.."

read -ra packages <<<"${PACKAGES:-tidegate-gate tidegate}"
host=$(rustc -vV | sed -n 's/^host: //p')
which=()
for package in "${packages[@]}"; do which+=(-p "$package"); done
if [ ! -d "$(rustc --print sysroot)/lib/rustlib/src/rust/library" ]; then
  echo "error: the source of the standard library is missing: \`rustup component add rust-src\`" >&2
  exit 1
fi
RUSTC_BOOTSTRAP=1 RUSTFLAGS=-Zsanitizer=thread CARGO_TARGET_DIR=target/tsan \
  TSAN_OPTIONS="halt_on_error=0 exitcode=66" \
  timeout "${SECONDS_ALL:-1800}" cargo test --locked -Zbuild-std --target "$host" "${which[@]}" --lib --tests \
  --no-fail-fast -- "${FILTER:-}"
