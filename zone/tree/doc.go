// Package tree is what an operator may set as the configuration of the YANG module openinof-inof:
//
//	/inof/config                             active-zone-set
//	/inof/zones/zone[name]/config            name member*
//	/inof/aliases/alias[name]/config         name member*
//	/inof/zone-sets/zone-set[name]/config    name zone*
//
// An Edit of that tree (merge, replace, create, delete, remove: RFC 6241 section 7.2) gives
// another Config, or an error as RFC 6241 appendix A names them. NETCONF and gNMI write the same
// edits in XML and in JSON; JSON is read and written here. Pure code.
package tree
