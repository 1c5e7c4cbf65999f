// Package testbed builds fabrics to run everything else on: labs in the format of
// containerlab (*.clab.yml), made of one network namespace per node, veth links
// and the project's own daemons, without containers. It pulls cables, kills
// daemons, watches what hosts are told, and takes everything away again.
//
// It stands above the whole chain (it starts inofd and snsd as processes) and below
// the command line; end-to-end tests, the demo and the fault-to-notice benchmark
// live here.
//
// # Leaving nothing behind
//
// A lab owns one directory (see Options.Root). Its state file is written before
// each step, so that whatever killed the process that builds a lab, the next `lab
// up` or `lab down` of that name knows what to remove. A process is only ever
// signalled when it can be proved to be the lab's: its start time and the boot id
// match what was recorded, or it sits in one of the lab's namespaces.
//
// # Privilege
//
// Namespaces and links need CAP_SYS_ADMIN and CAP_NET_ADMIN. Without them the
// commands run themselves again inside a new user namespace, where the caller is
// root over the lab alone. There, namespaces cannot be seen from outside, so a
// holder process keeps them while no daemon runs, and later commands enter through
// nsenter(1). A lab in a user namespace ends with its last process.
package testbed
