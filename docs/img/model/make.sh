#!/usr/bin/env bash
# Draws the pictures of docs/model.md anew: make build && docs/img/model/make.sh
set -euo pipefail
cd "$(dirname "$0")/../../.."
inofctl=${INOFCTL:-bin/inofctl}
out=docs/img/model
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

one() { # scenario, which of its pictures
  "$inofctl" fabric run -q --plot "$tmp" "scenarios/$1.yaml" >/dev/null 2>&1
  mv "$tmp/$2.svg" "$out/$1.svg"
}
two() { # scenarios to compare, name, which of the pictures
  "$inofctl" fabric compare --plot "$tmp" "scenarios/$1.yaml" "scenarios/$2.yaml" >/dev/null 2>&1
  mv "$tmp/$4.svg" "$out/$3.svg"
}

for s in unfairness-pfc unfairness-dcqcn lab-l1-pfc lab-l2-dcqcn ring-deadlock ring-recovery link-failure \
         black-path slow-receiver wdrr-shares permutation web-search corrupting-link; do
  one "$s" goodput
done
for s in lab-l3-one-deaf ring-control; do
  one "$s" queues
done
two victim-pfc victim-dcqcn victim goodput
two incast-pfc incast-dcqcn incast queues
two hook-deadlock hook-prevention hook goodput
two hook-deadlock hook-recovery hook-watchdog goodput
two nic-storm nic-storm-watchdog storm goodput
two headroom-too-small headroom-enough headroom queues
for s in cut return storm tor black; do
  one "failover-$s" iops
done
