#!/usr/bin/env bash
# `make coverage`: which lines of engine, store and runtime their tests reach, file by file. Fails, by name, for every
# file below FLOOR % (80).
#
# The compiler counts by itself; reading the counts takes the tools of the LLVM that it was built with, of the same major
# version: the `llvm-tools` of rustup, or Debian's package llvm-NN. PACKAGES="tidegate-engine" measures fewer tests.
set -euo pipefail
cd "$(dirname "$0")/.."

floor=${FLOOR:-80}
read -ra packages <<<"${PACKAGES:-tidegate-engine tidegate-store tidegate}"
target=target/coverage
major=$(rustc -vV | sed -n 's/^LLVM version: \([0-9]*\).*/\1/p')

# The folder with llvm-profdata and llvm-cov, if there is one.
tools() {
  local own
  own=$(rustc --print sysroot)/lib/rustlib/$(rustc -vV | sed -n 's/^host: //p')/bin
  for folder in "$own" "/usr/lib/llvm-$major/bin"; do
    if [ -x "$folder/llvm-profdata" ] && [ -x "$folder/llvm-cov" ]; then
      echo "$folder"
      return
    fi
  done
}

bin=$(tools)
if [ -z "$bin" ] && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
  echo "Installing llvm-$major"
  { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "llvm-$major"; } \
    >/dev/null 2>&1 </dev/null || true
  bin=$(tools)
fi
if [ -z "$bin" ]; then
  echo "error: llvm-profdata and llvm-cov of LLVM $major are missing:" \
    "\`rustup component add llvm-tools\`, or install llvm-$major" >&2
  exit 1
fi

rm -rf "$target/counts"
mkdir -p "$target/counts"
which=()
for package in "${packages[@]}"; do which+=(-p "$package"); done
export RUSTFLAGS="-Cinstrument-coverage" CARGO_TARGET_DIR=$target CARGO_INCREMENTAL=0
# What runs while it is built counts nothing of interest.
programs=$(LLVM_PROFILE_FILE=/dev/null cargo test --locked "${which[@]}" --lib --tests --no-run --message-format json |
  python3 -c '
import json, sys
for line in sys.stdin:
    found = json.loads(line)
    if found.get("executable") and found.get("profile", {}).get("test"):
        print(found["executable"])')
failed=0
LLVM_PROFILE_FILE=$PWD/$target/counts/%p-%8m.profraw \
  cargo test --locked "${which[@]}" --lib --tests --no-fail-fast -q || failed=1
"$bin/llvm-profdata" merge -sparse "$target"/counts/*.profraw -o "$target/all.profdata"

objects=()
for program in $programs; do objects+=(-object "$program"); done
"$bin/llvm-cov" export -summary-only -instr-profile "$target/all.profdata" "${objects[@]}" >"$target/summary.json"
python3 scripts/coverage.py "$target/summary.json" "$floor" || failed=1
exit "$failed"
