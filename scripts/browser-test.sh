#!/usr/bin/env bash
# The live page in a real browser, against the real binary. What it needs is fetched by name: Chromium from the system's
# packages where that is allowed, playwright-core from npm into the target folder. Where either cannot be had the test is
# skipped by name; with TIDEGATE_REQUIRE=1 that is a failure.
set -uo pipefail
cd "$(dirname "$0")/.."
target=${CARGO_TARGET_DIR:-target}

skip() {
  echo "SKIPPED the live page in a browser: $1"
  [ "${TIDEGATE_REQUIRE:-}" != 1 ]
  exit
}

if ! command -v chromium >/dev/null && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
  echo "Installing chromium"
  { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium; } \
    >/dev/null 2>&1 </dev/null
fi
browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome) ||
  skip "there is no chromium"
command -v npm >/dev/null && command -v node >/dev/null || skip "there is no node with npm"

# Modules are found beside the test: a copy, so that the tree stays as it is.
work=$target/browser
mkdir -p "$work"
cp scripts/browser/* "$work/"
if ! cmp -s scripts/browser/package-lock.json "$work/installed"; then
  npm ci --prefix "$work" --no-audit --no-fund --ignore-scripts --loglevel=error </dev/null ||
    skip "npm could not install playwright-core"
  cp scripts/browser/package-lock.json "$work/installed"
fi

cargo build --locked -q -p tidegate-cli --bin tidegate || exit 1
TIDEGATE_BINARY=$(realpath "$target/debug/tidegate") CHROMIUM=$browser node "$work/live-page.mjs"
