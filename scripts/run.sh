#!/usr/bin/env bash
# `make run`: builds the binary, serves on loopback with the trial handlers, deploys examples/ and says what to try.
#
# The data is in $TIDEGATE_DATA, `.tidegate` if not set. The address is $TIDEGATE_LISTEN, else 127.0.0.1:8088, or a
# free port when that one is taken. Every other setting of `tidegate serve` can be given as an environment variable.
set -euo pipefail
cd "$(dirname "$0")/.."

data=${TIDEGATE_DATA:-.tidegate}
bin=${CARGO_TARGET_DIR:-target}/debug/tidegate

echo "Building tidegate with the debug profile: the first build takes some minutes, the next ones seconds."
echo "(The fast binary comes from \`cargo build --release -p tidegate-cli\`.)"
cargo build --locked -p tidegate-cli

is_taken() { (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }

listen=${TIDEGATE_LISTEN:-}
if [ -z "$listen" ]; then
  listen=127.0.0.1:8088
  if is_taken 8088; then
    echo "Port 8088 is taken: a free one is used."
    listen=127.0.0.1:0
  fi
fi

# Shows what the server says of itself; once it listens, deploys the examples and says what to try next.
greet() {
  trap '' INT
  local url='' line
  while IFS= read -r line; do
    case $line in
      *' listens on '*) url=${line##* listens on }; url=${url%"${TIDEGATE_BASE_PATH:-/api/v1}"} ;;
      Try:*) break ;;
    esac
    printf '%s\n' "$line"
  done
  [ -n "$url" ] || return 0
  if [ -z "${TIDEGATE_TOKEN:-}${TIDEGATE_TOKEN_FILE:-}" ] && [ -f "$data/token" ]; then
    export TIDEGATE_TOKEN_FILE=$data/token
  fi
  export TIDEGATE_SERVER=$url
  echo "Deploying the examples:"
  "$bin" deploy examples/*.bpmn || echo "the examples could not be deployed; the server runs all the same"
  echo "Try in another terminal, in this directory:"
  echo "  export PATH=\"$(cd "${bin%/*}" && pwd):\$PATH\""
  [ "$url" = http://127.0.0.1:8088 ] || echo "  export TIDEGATE_SERVER=$url"
  [ -z "${TIDEGATE_TOKEN_FILE:-}" ] || echo "  export TIDEGATE_TOKEN_FILE=$TIDEGATE_TOKEN_FILE"
  echo "  tidegate start hello --wait"
  echo "  tidegate start order --var amount=5000 && tidegate tasks"
  echo "  tidegate instances"
  echo "Ctrl-C drains and ends the server; a second one forces it."
  cat >/dev/null
}

# The server takes this process's place: signals and the exit code are its own.
exec "$bin" serve --demo --data "$data" --listen "$listen" > >(greet)
