// Package labs holds the topologies that come with the project, so that the demo
// runs from wherever the program is. Each *.clab.yml is also there for use with
// `inofctl lab up`.
package labs

import "embed"

// FS holds the topologies and the files they name.
//
//go:embed *.clab.yml demo leafspine pair standalone
var FS embed.FS

// Demo is the topology of the demo and of the fault-to-notice benchmark.
const Demo = "demo.clab.yml"

// Pair is the topology with two reflectors and three access switches.
const Pair = "pair.clab.yml"
