#!/usr/bin/env bash
# Starts a Redis, three processes of the example, and haproxy in front of them, until Ctrl-C.
# Needs the Debian packages redis-server and haproxy. The ports are FLEET_PORT (8000) and the four after it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

for tool in redis-server haproxy; do
    command -v "$tool" >/dev/null || { echo "missing: $tool (apt install $tool)" >&2; exit 1; }
done
export FLEET_PORT="${FLEET_PORT:-8000}"
export FLEET_NODE_1=$((FLEET_PORT + 1)) FLEET_NODE_2=$((FLEET_PORT + 2)) FLEET_NODE_3=$((FLEET_PORT + 3))
redis_port=$((FLEET_PORT + 4))
# All processes need the same one. In production it comes from where secrets are kept.
export FLEET_SECRET="${FLEET_SECRET:-$(od -An -N32 -tx1 /dev/urandom | tr -d ' \n')}"
export REDIS_URL="redis://127.0.0.1:$redis_port/"

program="${FLEET_PROGRAM:-}"
if [[ -z "$program" ]]; then
    cargo build --quiet --package pintle-redis --example fleet
    program="$(cargo metadata --format-version 1 --no-deps | sed 's/.*"target_directory":"\([^"]*\)".*/\1/')/debug/examples/fleet"
fi

# Waits until the process $2 listens at the port $1.
ready() {
    until (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; do
        kill -0 "$2" 2>/dev/null || { echo "nothing could be started at port $1: set FLEET_PORT to another one" >&2; exit 1; }
        sleep 0.1
    done
}

data="$(mktemp -d)"
trap 'kill $(jobs -p) 2>/dev/null; wait; rm -rf "$data"' EXIT
trap 'exit 130' INT TERM
# `appendfsync always`: nothing that was acknowledged is lost in a restart.
redis-server --bind 127.0.0.1 --port "$redis_port" --dir "$data" --save '' --appendonly yes --appendfsync always \
    --maxmemory-policy noeviction >/dev/null &
ready "$redis_port" $!
for port in "$FLEET_NODE_1" "$FLEET_NODE_2" "$FLEET_NODE_3"; do
    "$program" "127.0.0.1:$port" >/dev/null &
    ready "$port" $!
done
haproxy -db -f haproxy.cfg &
ready "$FLEET_PORT" $!
echo "http://127.0.0.1:$FLEET_PORT/mcp"
wait -n
