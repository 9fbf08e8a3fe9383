#!/usr/bin/env bash
# Starts what docker-compose.yaml starts, from the same files, as processes on
# loopback: two gateways, Redis, the OPA backend, Prometheus. Needs curl, Go,
# prometheus and redis. Ctrl-C or SIGTERM ends all of them, and so does
# the end of any. Logs and what was built are in state/ (or $STATE).
set -euo pipefail
cd "$(dirname "$0")"
root=$(cd ../.. && pwd)

# The published ports, as in docker-compose.yaml, and those that are inside there.
GATEWAY_1=${GATEWAY_1:-8787} GATEWAY_2=${GATEWAY_2:-8797}
ADMIN_1=${ADMIN_1:-8788} ADMIN_2=${ADMIN_2:-8798}
POLICY=${POLICY:-9001} REDIS=${REDIS:-6379} PROMETHEUS=${PROMETHEUS:-9090}

for program in curl go prometheus redis-cli redis-server; do
	command -v "$program" >/dev/null || { echo "run.sh needs $program" >&2; exit 1; }
done

mkdir -p "${STATE:=state}"
STATE=$(cd "$STATE" && pwd)
export ENV_FILE=${ENV_FILE:-$PWD/.env}
./keys.sh
set -a
# shellcheck source=/dev/null
. "$ENV_FILE"
ACME_POLICY_TOKEN=$POLICY_TOKEN
set +a

(cd "$root" && go build -trimpath -o "$STATE/ahp-gateway" ./cmd/ahp-gateway)
(cd ../opa && go build -trimpath -o "$STATE/opa-backend" .)

# place writes a file with loopback addresses in place of the services' names.
place() { # FROM TO LISTEN ADMIN
	sed -e "s/redis:6379/127.0.0.1:$REDIS/" -e "s/policy:9001/127.0.0.1:$POLICY/" \
		-e "s/gateway-1:8788/127.0.0.1:$ADMIN_1/" -e "s/gateway-2:8788/127.0.0.1:$ADMIN_2/" \
		-e "s/0\.0\.0\.0:8787/127.0.0.1:${3:-0}/" -e "s/0\.0\.0\.0:8788/127.0.0.1:${4:-0}/" "$1" >"$2"
}
place config/gateway.yaml "$STATE/gateway-1.yaml" "$GATEWAY_1" "$ADMIN_1"
place config/gateway.yaml "$STATE/gateway-2.yaml" "$GATEWAY_2" "$ADMIN_2"
place prometheus/prometheus.yml "$STATE/prometheus.yml"
cp "$root/deploy/helm/ahp-gateway/files/alerts.yaml" "$STATE/alerts.yaml"

names=() pids=()
# begin starts a program in the background, with its log in state/NAME.log. It
# has a process group of its own: Ctrl-C reaches this script alone, which ends
# the gateways before what they need.
begin() { # NAME COMMAND...
	local name=$1
	shift
	set -m
	"$@" >"$STATE/$name.log" 2>&1 &
	set +m
	names+=("$name") pids+=("$!")
	echo "$!" >"$STATE/$name.pid"
}

# stop ends what runs, the gateways first, and waits for it.
stop() {
	local i step
	trap - EXIT
	trap '' INT TERM
	for ((i = ${#pids[@]} - 1; i >= 0; i--)); do
		kill -TERM "${pids[i]}" 2>/dev/null || true
		# A gateway drains for at most 25 s.
		for ((step = 0; step < 400; step++)); do
			kill -0 "${pids[i]}" 2>/dev/null || break
			sleep 0.1
		done
		kill -KILL "${pids[i]}" 2>/dev/null || true
		wait "${pids[i]}" 2>/dev/null || true
		rm -f "$STATE/${names[i]}.pid"
	done
}
trap stop EXIT
trap 'exit 0' INT TERM

# running fails with the log of the first program that has ended.
running() {
	local i
	for ((i = 0; i < ${#pids[@]}; i++)); do
		if ! kill -0 "${pids[i]}" 2>/dev/null; then
			echo "${names[i]} has ended:" >&2
			tail -n 20 "$STATE/${names[i]}.log" >&2
			return 1
		fi
	done
}

# until_done repeats a command until it succeeds, for a minute at most.
until_done() {
	local end=$((SECONDS + 60))
	until "$@" >/dev/null 2>&1; do
		running || exit 1
		if [ "$SECONDS" -ge "$end" ]; then
			echo "this does not come to work: $*" >&2
			exit 1
		fi
		sleep 0.1
	done
}

pong() { REDISCLI_AUTH=$REDIS_PASSWORD redis-cli -p "$REDIS" ping | grep -q PONG; }
answers() { curl -fsS -o /dev/null --max-time 2 "http://127.0.0.1:$1"; }

# The password comes on standard input: nobody reads it in a list of processes.
begin redis redis-server "$PWD/redis/redis.conf" --bind 127.0.0.1 --port "$REDIS" --dir "$STATE" - <<<"requirepass $REDIS_PASSWORD"
begin policy "$STATE/opa-backend" -listen "127.0.0.1:$POLICY" -policy ../opa/policy
begin prometheus prometheus --config.file="$STATE/prometheus.yml" --storage.tsdb.path="$STATE/prometheus" \
	--storage.tsdb.retention.time=2d --web.listen-address="127.0.0.1:$PROMETHEUS"
# A gateway that starts without Redis serves as well, and knows nothing of the other.
until_done pong
until_done answers "$POLICY/healthz"
begin gateway-1 "$STATE/ahp-gateway" serve --config "$STATE/gateway-1.yaml"
begin gateway-2 "$STATE/ahp-gateway" serve --config "$STATE/gateway-2.yaml"

until_done answers "$ADMIN_1/readyz"
until_done answers "$ADMIN_2/readyz"
until_done answers "$PROMETHEUS/-/ready"
echo "ready: http://127.0.0.1:$GATEWAY_1/hooks and http://127.0.0.1:$GATEWAY_2/hooks, Prometheus at http://127.0.0.1:$PROMETHEUS"

while running; do
	sleep 0.5
done
exit 1
