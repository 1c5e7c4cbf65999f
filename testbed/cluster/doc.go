// Package cluster runs a cluster of three reflectors as operators do: three inofd
// processes with TLS on loopback addresses, changed by inofctl, killed
// without warning and started again.
package cluster
