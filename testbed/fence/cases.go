package fence

import (
	"time"

	"github.com/openinof/inof/testbed/fence/round"
)

// Case is a raw mechanism, without daemons.
type Case struct {
	Spec round.Spec
	What string
	Lost bool // the mechanism does not fence
	Long bool // takes more than 15 s
}

func raw(number int, place round.Place, hold time.Duration, what string, lost bool) Case {
	return Case{Spec: round.Spec{Case: number, Place: place, Hold: hold, KATO: 5 * time.Second}, What: what, Lost: lost, Long: hold > 8*time.Second}
}

// Cases are the controls of the judge. A copy waits longer than it takes an emulated machine to act.
var Cases = []Case{
	raw(1, round.Host, 4*time.Second, "the host destroys its sockets", true),
	raw(2, round.Host, 4*time.Second, "the switch blocks for longer than the copy waits, the host destroys", false),
	raw(3, round.Host, 6*time.Second, "the same", false),
	raw(4, round.Host, 6*time.Second, "the block is lifted while the copy still waits", true),
	raw(5, round.Host, 20*time.Second, "the block stands for more than twice the keep-alive time-out", false),
	raw(6, round.Network, 4*time.Second, "the host destroys, no block", true),
	raw(7, round.Network, 4*time.Second, "the switch blocks before the queue, the host destroys", true),
	raw(8, round.Network, 6*time.Second, "the switch blocks and empties the queue, the host destroys", false),
	raw(9, round.Network, 4*time.Second, "the port to the array is shut, the host destroys", false),
	raw(10, round.Network, 4*time.Second, "the target destroys its sockets", false),
	raw(10, round.Host, 4*time.Second, "the target destroys its sockets", false),
	raw(11, round.Execute, 3*time.Second, "the host destroys", true),
	raw(12, round.Execute, 3*time.Second, "the switch blocks, the host destroys", true),
	raw(13, round.Execute, 3*time.Second, "the target destroys, then the host", true),
	raw(14, round.Execute, 3*time.Second, "the target destroys and waits until its controller is gone", true),
	raw(15, round.Execute, 3*time.Second, "the target drops both ways, destroys, waits, the host destroys", false),
	raw(16, round.Execute, 3*time.Second, "the same, the switch dropping", false),
	raw(17, round.Execute, 12*time.Second, "as 15: the host's kernel leaves by itself before", true),
	{Spec: round.Spec{Case: 18, Place: round.Execute, Hold: 40 * time.Second, KATO: 60 * time.Second}, What: "as 15, with a keep-alive time-out of 60 s", Long: true},
	raw(19, round.Execute, 25*time.Second, "the path is cut silently, nobody acts", true),
	raw(20, round.Execute, 3*time.Second, "the path is whole, nobody acts", false),
}
