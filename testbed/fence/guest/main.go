// Command guest is what runs in the virtual machine of testbed/fence: the host, the switches of two
// planes, the array and its disk, and one round after the other.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/openinof/inof/testbed/fence/round"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "guest:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	switch {
	case len(args) == 1 && args[0] == "setup":
		return setup()
	case len(args) == 1 && args[0] == "disk":
		return serveDisk()
	case len(args) == 4 && args[0] == "write":
		return write(args[1], args[2], args[3])
	case len(args) == 3 && args[0] == "flood":
		return sendFlood(args[1], args[2])
	case len(args) == 2 && args[0] == "count":
		return countFrames(args[1])
	case len(args) == 2 && args[0] == "round":
		var s round.Spec
		if err := json.Unmarshal([]byte(args[1]), &s); err != nil {
			return err
		}
		r := play(s)
		return json.NewEncoder(os.Stdout).Encode(r)
	}
	return errors.New("usage: guest setup | disk | write DEVICE A B | flood CARD SIZE | count CARD | round SPEC")
}
