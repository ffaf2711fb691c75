#!/usr/bin/env bash
# The HTTP interface against its own description: requests of every kind that `openapi.json` allows and of kinds that it
# does not, against the real binary. No answer may be a server error, an undocumented status or another form.
#
# SECONDS_EACH=n and EXAMPLES=n make it search longer, SEED=n elsewhere. schemathesis comes from PyPI by the names and
# versions in scripts/api/requirements.txt, into the target folder. Where it cannot be had the test is skipped by name;
# with TIDEGATE_REQUIRE=1 that is a failure.
set -uo pipefail
cd "$(dirname "$0")/.."
target=${CARGO_TARGET_DIR:-target}
work=$target/api
mkdir -p "$work"

skip() {
  echo "SKIPPED the HTTP interface against its description: $1"
  [ "${TIDEGATE_REQUIRE:-}" != 1 ]
  exit
}

python=$work/venv/bin/python
if ! cmp -s scripts/api/requirements.txt "$work/installed"; then
  rm -rf "$work/venv"
  if ! python3 -m venv "$work/venv" >/dev/null 2>&1; then
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
      { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends python3-venv; } \
        >/dev/null 2>&1 </dev/null
    fi
    python3 -m venv "$work/venv" >/dev/null 2>&1 || skip "python3 cannot make a virtual environment"
  fi
  "$python" -m pip install -q --disable-pip-version-check --no-deps -r scripts/api/requirements.txt </dev/null ||
    skip "schemathesis could not be installed"
  cp scripts/api/requirements.txt "$work/installed"
fi

cargo build --locked -q -p tidegate-cli --bin tidegate || exit 1
TIDEGATE_BINARY=$(realpath "$target/debug/tidegate") exec "$python" scripts/api/run.py "$work"
