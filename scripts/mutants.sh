#!/usr/bin/env bash
# `make mutants`: changes one operator or result after the other in what stops and recovers, and expects a test to fail.
#
# PART=gate (the default), or PART=runtime: drain, cut, marks, recovery and pauses, and the store's conditional write that
# a mark is. ONLY=REGEX keeps the mutants of that name, where the part is runtime. The last line has the counts; what was
# missed is listed above it. Changes that mean nothing are in .cargo/mutants.toml.
set -euo pipefail
cd "$(dirname "$0")/.."

command -v cargo-mutants >/dev/null || cargo install --locked cargo-mutants

case ${PART:-gate} in
  gate)
    out=target/mutants/gate
    mkdir -p "$out"
    NEXTEST_PROFILE=mutants CARGO_PROFILE_DEV_DEBUG=0 \
      cargo mutants --test-tool nextest --timeout 300 -o "$out" -f 'crates/gate/src/*.rs' --test-package tidegate-gate
    ;;
  runtime)
    tests=()
    for test in drain drain_times lifecycle recovery interrupted quiescence queue faults ingress cycle control engine \
      observation stepped conformance marking sqlite_files; do
      tests+=("--test=$test")
    done
    exec python3 scripts/mutants.py runtime "${tests[@]}" \
      'crates/runtime/src/owner/{cut,retry,bury}.rs' \
      'crates/runtime/src/{drain,recovery,plan,spill,parts,pause}.rs' \
      'crates/store/src/{matching,sqlite/commit,sqlite/instance}.rs'
    ;;
  *)
    echo "error: PART is gate or runtime" >&2
    exit 2
    ;;
esac
