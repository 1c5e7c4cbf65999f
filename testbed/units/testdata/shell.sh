#!/bin/sh
# What a lab asks of a Debian in a virtual machine: shell scripts, a line each, in base64, from the port lab.shell; each
# is answered by its status and the size of its output, and the output. testbed/vm/init has the same.
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin HOME=/root
mkdir -p /lab/node
mount -t 9p -o trans=virtio,version=9p2000.L,msize=262144 node /lab/node
while :; do
	for n in /sys/class/virtio-ports/*; do
		[ "$(cat "$n/name" 2>/dev/null)" = lab.shell ] && break 2
	done
	sleep 0.1
done
exec 3<>"/dev/${n##*/}"
echo ready >&3
while read -r line <&3; do
	echo "$line" | base64 -d >/run/.line
	sh /run/.line >/run/.out 2>&1 </dev/null
	echo "$? $(wc -c </run/.out)" >&3
	cat /run/.out >&3
done
