// Package sonic reads the health of a SONiC switch's ports from the switch's Redis
// databases, where the ASIC's counters are: the kernel's interfaces see the traffic
// of the CPU alone.
//
// A Source stands before another Dataplane, normally fabric/linux, which goes on to
// tell of ports, carrier and frames. From COUNTERS_DB (database 2) come the ASIC's
// port counters and the state of the PFC watchdog of each queue; queue n is taken for
// priority n, as in SONiC's default maps. From STATE_DB (database 6) comes the
// received power that xcvrd has read from the module. SONiC refreshes port counters
// each second and the watchdog each 200 ms unless told otherwise, so PFC counters are
// shown, but storms are the watchdog's word alone. Redis speaks RESP2 (Redis
// protocol specification).
package sonic
