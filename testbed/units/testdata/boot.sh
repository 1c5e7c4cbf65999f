#!/usr/bin/env bash
# boot.sh DIR: starts a systemd as the first process of a machine of its own, made of namespaces: this machine's
# programs, a copy of its /etc and of what dpkg knows, everything else new; of its units only targets and the journal. It runs until
# it is told to power off, or this script is killed. DIR becomes the machine's root.
set -euo pipefail
if [ "${2:-}" = "" ]; then
	# Mounts of its own, and a control group that the machine takes for the topmost one.
	exec unshare --mount --propagation private bash "$0" "$1" outside
fi
root=$1
case $2 in
outside)
	mount -t tmpfs -o mode=755 tmpfs "$root"
	mkdir "$root"/{usr,dev,proc,sys,run,tmp,var,root,cgroup}
	mount -t cgroup2 cgroup2 "$root/cgroup"
	group=$root/cgroup/inof-units-$$
	mkdir "$group"
	leave() { # its processes may take a moment to die
		for _ in $(seq 50); do
			find "$group" -depth -type d -exec rmdir {} + 2>/dev/null && break
			sleep 0.1
		done
	}
	trap leave EXIT
	# A child of this group is the machine's: the script stays outside and cleans up.
	mkdir "$group/machine"
	(
		echo "$BASHPID" >"$group/machine/cgroup.procs"
		exec unshare --cgroup --pid --fork --kill-child --net --uts --ipc --mount bash "$0" "$root" inside
	) &
	trap 'kill -KILL $! 2>/dev/null; wait' HUP INT TERM
	wait $!
	;;
inside)
	umount "$root/cgroup"
	# What is installed in the machine stays in it.
	mkdir "$root"/{upper,work}
	mount -t overlay -o "lowerdir=/usr,upperdir=$root/upper,workdir=$root/work" overlay "$root/usr"
	for d in bin sbin lib lib64; do ln -s "usr/$d" "$root/$d"; done
	cp -a /etc "$root/etc"
	rm -rf "$root"/etc/{systemd/system,machine-id,init.d,rc?.d,inof,sysusers.d}
	mkdir -p "$root"/etc/systemd/system "$root"/var/{lib,log,tmp} "$root/units" "$root/local"
	cp -a /var/lib/dpkg "$root/var/lib/"
	chmod 1777 "$root/tmp" "$root/var/tmp"
	: >"$root/etc/machine-id"
	for t in basic sysinit multi-user network-pre local-fs local-fs-pre sockets timers paths slices shutdown umount final poweroff; do
		cp "/usr/lib/systemd/system/$t.target" "$root/units/" 2>/dev/null || true
	done
	cp /usr/lib/systemd/system/systemd-{poweroff.service,journald.service,journald.socket} "$root/units/"
	mkdir "$root/units/sockets.target.wants"
	ln -s ../systemd-journald.socket "$root/units/sockets.target.wants/"
	mount --bind "$root/units" "$root/usr/lib/systemd/system"
	mount --bind "$root/local" "$root/usr/local"
	mkdir -p "$root"/usr/local/{bin,sbin}
	mount -t proc proc "$root/proc"
	mount -t sysfs sysfs "$root/sys"
	mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup"
	mount -t tmpfs -o mode=755 tmpfs "$root/dev"
	for n in null zero full random urandom tty; do : >"$root/dev/$n" && mount --bind "/dev/$n" "$root/dev/$n"; done
	mkdir "$root"/dev/{shm,pts,mqueue}
	mount -t devpts devpts "$root/dev/pts" # units with PrivateDevices take it from here
	ln -s pts/ptmx "$root/dev/ptmx"
	: >"$root/dev/console"
	mkdir "$root/old"
	cd "$root"
	pivot_root . old
	umount -l /old
	exec env -i container=inof PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin \
		/usr/lib/systemd/systemd --system --unit=multi-user.target --log-target=console --log-level=info --show-status=no
	;;
esac
