#!/bin/sh
# link.sh - a worker and a parameter server behind a slow link: its utilization
# while they communicate.
#
# usage: bench/link.sh [PACELINE [RATE]]     (as root: network namespaces, tc)
#
# Trains AlexNet with one example per step: 244 MB in each direction.
set -eu
paceline=${1:-build/paceline}
rate=${2:-1gbit}
work=$(mktemp -d)
a=pl-link-a b=pl-link-b
clean() {
    ip netns del $a 2>/dev/null || true
    ip netns del $b 2>/dev/null || true
    rm -rf "$work"
}
trap clean EXIT
ip netns add $a
ip netns add $b
ip link add veth-a netns $a type veth peer name veth-b netns $b
for side in a b; do
    space=pl-link-$side
    address=10.77.0.1
    [ $side = a ] || address=10.77.0.2
    ip -n $space addr add $address/24 dev veth-$side
    ip -n $space link set veth-$side up
    ip -n $space link set lo up
    tc -n $space qdisc add dev veth-$side root tbf rate "$rate" burst 256k \
        latency 50ms
done
cat >"$work/cluster.json" <<JSON
{"cluster": {"worker": ["10.77.0.2:4711"], "ps": ["10.77.0.1:4711"]}}
JSON
flags="train alexnet --cluster $work/cluster.json --insecure --batch 1
    --examples 16 --steps 6 --eval-every never --checkpoint-every never
    --dropout 0 --quiet --transport tcp"
# Word splitting is wanted.
# shellcheck disable=SC2086
ip netns exec $a "$paceline" $flags --role ps --index 0 2>"$work/ps.log" &
# shellcheck disable=SC2086
ip netns exec $b "$paceline" $flags --role worker --index 0 --run "$work/run" \
    --json >"$work/out.json" 2>"$work/worker.log" || {
    cat "$work"/*.log >&2
    exit 1
}
wait
python3 - "$work/out.json" "$rate" <<'PY'
import json, sys
row = json.load(open(sys.argv[1]))["per_worker"][0]
share = row["sending_share"] + row["waiting_share"]
seconds = share * row["seconds"]
each_way = 4 * 61100840 * row["steps"]
print(f"{row['steps']} steps, {row['seconds']:.2f} s, {seconds:.2f} s of it "
      f"communicating: {8 * 2 * each_way / seconds / 1e9:.3f} Gbit/s both ways "
      f"together over a link of {sys.argv[2]} each way")
PY
