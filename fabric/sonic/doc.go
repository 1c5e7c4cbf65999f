// Package sonic is a SONiC switch by its Redis databases: the health of its ports, and hard
// zoning in its ASIC. The kernel's interfaces see the traffic of the CPU alone.
//
// A Source stands before another Dataplane, normally fabric/linux, which goes on to announce ports,
// carrier and frames. A port is up while the kernel and APPL_DB (database 0) both say so, and shut
// once ASIC_DB (database 1) says so; it is shut and opened in CONFIG_DB, and what is not confirmed is
// a Doubt. From COUNTERS_DB (database 2) come the ASIC's port counters, or none, and the state of the
// PFC watchdog of each queue; queue n is taken for priority n, as in SONiC's default maps. What the
// watchdog finds comes at once by its channel; SONiC refreshes port counters each second, so PFC
// counters are shown, but storms are the watchdog's word alone. From STATE_DB (database 6) comes the
// received power that xcvrd has read from the module. Redis speaks RESP2 (Redis protocol
// specification).
//
// An ACL brings the rows of package hardzone into CONFIG_DB (database 4): two tables of types of
// their own (ACL_TABLE_TYPE, ACL_TABLE, ACL_RULE), which orchagent takes into the ASIC. It
// reads from STATE_DB what the ASIC can do and which rules it has taken, from COUNTERS_DB what the
// rules have counted (ACL_COUNTER_RULE_MAP) and how much room there is (CRM). STATE_DB goes on to call
// rules active whose table another program has deleted, so a table is never put back without its rules.
//
// A Fence blocks paths by rules at egress and ingress, or by shutting a port, and a Guard keeps LLDP
// and SNSD frames on their link.
package sonic
