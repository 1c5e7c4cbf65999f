// Package apart measures hard zoning: what a frame costs in the kernel, beside nftables with the
// same policy and beside no filter, and how long tables take to load and to change.
package apart
