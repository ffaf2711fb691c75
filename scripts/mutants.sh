#!/usr/bin/env bash
# `make mutants`: changes one operator or result after the other in what stops and recovers, and expects a test to fail.
#
# PART=gate (the default), or PART=runtime: drain, cut, marks, recovery, pauses. It takes hours for the second. The last
# line has the count; what was missed is listed above it. Changes that mean nothing are in .cargo/mutants.toml.
set -euo pipefail
cd "$(dirname "$0")/.."

command -v cargo-mutants >/dev/null || cargo install --locked cargo-mutants

out=target/mutants/${PART:-gate}
mkdir -p "$out"
export NEXTEST_PROFILE=mutants CARGO_PROFILE_DEV_DEBUG=0
common=(--test-tool nextest --timeout 300 -o "$out")

case ${PART:-gate} in
  gate)
    cargo mutants "${common[@]}" -f 'crates/gate/src/*.rs' --test-package tidegate-gate
    ;;
  runtime)
    files=()
    for part in owner/cut drain recovery owner/retry owner/bury plan spill parts pause; do
      files+=(-f "crates/runtime/src/$part.rs")
    done
    cargo mutants "${common[@]}" "${files[@]}" --test-package tidegate -- --lib \
      --test drain --test lifecycle --test quiescence --test queue --test faults --test ingress --test cycle
    ;;
  *)
    echo "error: PART is gate or runtime" >&2
    exit 2
    ;;
esac
