// Package sonic is a SONiC switch by its Redis databases: the health of its ports, and hard
// zoning in its ASIC. The kernel's interfaces see the traffic of the CPU alone.
//
// A Source stands before another Dataplane, normally fabric/linux, which goes on to
// tell of ports, carrier and frames. From COUNTERS_DB (database 2) come the ASIC's
// port counters and the state of the PFC watchdog of each queue; queue n is taken for
// priority n, as in SONiC's default maps. From STATE_DB (database 6) comes the
// received power that xcvrd has read from the module. SONiC refreshes port counters
// each second and the watchdog each 200 ms unless told otherwise, so PFC counters are
// shown, but storms are the watchdog's word alone. Redis speaks RESP2 (Redis
// protocol specification).
//
// An ACL brings the rows of package hardzone into CONFIG_DB (database 4): two tables of types of
// their own (ACL_TABLE_TYPE, ACL_TABLE, ACL_RULE), which orchagent takes into the ASIC. It
// reads from STATE_DB what the ASIC can do and which rules it has taken, from COUNTERS_DB what the
// rules have counted (ACL_COUNTER_RULE_MAP) and how much room there is (CRM).
package sonic
