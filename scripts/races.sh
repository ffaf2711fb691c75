#!/usr/bin/env bash
# `make tsan`: tests of the gate and the runtime under ThreadSanitizer, which sees two threads at the same memory without
# an order between them.
#
# PACKAGES and FILTER choose the tests. The sanitizer is an unstable flag of the compiler, so it is asked to take those
# (RUSTC_BOOTSTRAP). Where the compiler's source is there (`rustup component add rust-src`) the standard library is built
# with it too; elsewhere it is linked as it is, which the first flag below allows, and what only the standard library
# orders is named in scripts/races.supp.
set -euo pipefail
cd "$(dirname "$0")/.."

read -ra packages <<<"${PACKAGES:-tidegate-gate tidegate}"
host=$(rustc -vV | sed -n 's/^host: //p')
which=()
for package in "${packages[@]}"; do which+=(-p "$package"); done
flags="-Zsanitizer=thread -Cunsafe-allow-abi-mismatch=sanitizer"
std=()
if [ -d "$(rustc --print sysroot)/lib/rustlib/src/rust/library" ]; then
  std=(-Zbuild-std)
  flags="-Zsanitizer=thread"
fi
echo "Under ThreadSanitizer: ${packages[*]}, the standard library ${std[*]:-as it is}"
RUSTC_BOOTSTRAP=1 RUSTFLAGS=$flags CARGO_TARGET_DIR=target/tsan \
  TSAN_OPTIONS="suppressions=$PWD/scripts/races.supp halt_on_error=0 exitcode=66" \
  timeout "${SECONDS_ALL:-1800}" cargo test --locked "${std[@]}" --target "$host" "${which[@]}" --lib --tests \
  --no-fail-fast -- "${FILTER:-}"
