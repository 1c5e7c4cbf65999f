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
several() { # name, which of the pictures, scenarios to compare
  local name=$1 which=$2
  shift 2
  "$inofctl" fabric compare --plot "$tmp" "${@/#/scenarios/}" >/dev/null 2>&1
  mv "$tmp/$which.svg" "$out/$name.svg"
}

for s in unfairness-pfc unfairness-dcqcn lab-l1-pfc lab-l2-dcqcn ring-deadlock ring-recovery link-failure \
         black-path slow-receiver wdrr-shares permutation web-search corrupting-link \
         degraded-link lossless-follows ai-ecn-web-search; do
  one "$s" goodput
done
for s in lab-l3-one-deaf ring-control fast-cnp iqcn npcc flex-buffer tcp-beside-roce ai-ecn-inference \
         ai-ecn-incast; do
  one "$s" queues
done
several victim goodput victim-pfc.yaml victim-dcqcn.yaml
several incast queues incast-pfc.yaml incast-dcqcn.yaml
several hook goodput hook-deadlock.yaml hook-prevention.yaml
several hook-watchdog goodput hook-deadlock.yaml hook-recovery.yaml
several storm goodput nic-storm.yaml nic-storm-watchdog.yaml
several headroom queues headroom-too-small.yaml headroom-enough.yaml
for s in cut return storm tor black; do
  one "failover-$s" iops
done
one active-active iops
several yardsticks queues incast-{hpcc,timely,swift,dctcp}.yaml
several balancers goodput flowlet.yaml fixed.yaml spray-reorder.yaml nslb.yaml
several thresholds queues dynamic-ecn.yaml ai-ecn.yaml mice.yaml
several ctcc queues ctcc.yaml ctcc-dcqcn.yaml
several vxlan queues vxlan-ecn.yaml vxlan-ecn-lost.yaml
several hpc-and-storage queues hpc-and-storage.yaml hpc-and-storage-one-class.yaml
