// Package workload builds the fabrics and traffic that results are compared on: the
// usual topologies (star, leaf-spine, three-tier Clos, ring, two sites) and the
// usual arrivals (incast, permutation, all-to-all, Poisson from size distributions),
// among them the reference workloads W1, W2 and W3 of docs/performance.md.
package workload
