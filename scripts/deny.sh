#!/usr/bin/env bash
# Licences, banned crates and sources, as deny.toml says: by cargo-deny where it is installed, else by the small
# reader beside this file.
set -euo pipefail
cd "$(dirname "$0")/.."
if command -v cargo-deny >/dev/null; then
  exec cargo deny check bans licenses sources
fi
exec python3 scripts/check-dependencies.py
