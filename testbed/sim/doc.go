// Package sim runs a whole fabric in one goroutine: devices and reflectors
// (device.Core) and hosts (snsd.Agent) on a network in memory, with virtual time
// and every choice made by one seeded generator. It breaks what can break, lets
// the fabric come to rest, and compares what every host was told with a truth that
// is computed apart from the code under test.
//
// # What is simulated
//
// Sessions are link.Session machines: every message is encoded, sealed, cut into a byte stream in
// order, opened and decoded. Connections are cut, with or without the ends noticing, and dialed
// again with the dialer's own back-off. Devices stop in an orderly way, crash or lose their power;
// what they keep are rows that come to their disk some time after they changed. A crash loses none,
// a power cut those that have not come there yet (and takes the carrier of every port), and now and
// then a disk is lost with all that is on it. Cables are pulled and plugged, also where no process
// sees it, hosts fall silent, restart, move, take another address or one that is taken already;
// zones come, change and go; frames on access links are lost and doubled.
//
// # What is checked
//
// Who shares a zone with whom, what may still be in force at a device, and when a notice is a
// repetition is said by testbed/truth, as for the labs.
//
//   - At rest every host's last notice about every other address is the truth: who is
//     where, which links are up, who was heard since, which TTL has not run out,
//     which zones there are (see truth).
//   - No device tells a host `active` about an address that no zone configuration
//     which that device may still hold puts together with it, nor about the host
//     itself; and nothing twice in a row without a cause (see watch). The reason for which
//     it tells `inactive` has been true since the fabric was last at rest (see reason).
//   - A reflector that stops, crashes or is cut off, and a switch that restarts or
//     crashes, cause no notice at all (see unnoticed).
//   - Nothing grows: queues drain, and no device holds a host, a zone or a fault that
//     is not there any more (see rest).
//
// Where the protocol as it is cannot know better the simulator excuses a pair and
// counts why (see Excuse); nothing else is passed over.
//
// That each of these laws finds what breaks it is tried on a fabric at rest (judge_test.go).
//
// The tests of internal/daemon have whole fabrics too, in named cases: of real daemons, since what
// they try is goroutines, sessions on connections, files and the API, of which there is nothing
// here.
//
// A failure names its seed and the command that replays it with a trace:
//
//	go test ./testbed/sim -run TestSeeds                                    a few seconds' worth of seeds
//	go test ./testbed/sim -run TestSeeds -sim.seeds 3000 -timeout 1h        that many, from -sim.first on
//	go test ./testbed/sim -run TestSeeds -sim.seed 42 -sim.trace            one seed, every event
//	go test ./testbed/sim -run TestSeeds -sim.devices 50 -sim.hosts 200     larger fabrics
//	go test ./testbed/sim -run TestClusterSeeds -sim.seeds 100              reflectors that are a cluster
//	go test ./testbed/sim -run TestScale -sim.scale -v                      1,000 devices, 4,000 hosts, 500 zones
//
// With two reflectors (-sim.reflectors 2, and always a part of TestPairSeeds) their
// zones differ for a moment or a minute, or over a whole comparison: then the truth is
// what they agree on, identical or union as the seed says, and while a device hears both
// no notice may follow one of them alone.
//
// Three reflectors or more are the members of a cluster (TestClusterSeeds): the real one, whose
// goroutines run in the bubble of virtual time of testing/synctest, over a transport in memory,
// with their own log and snapshots. Leaders are stopped, members set apart, wiped, replaced,
// removed and added; an operator asks any of them for changes. The truth is the log that follows
// from what was asked and answered. What they draw follows from
// the seed, and the world waits until they have done all they can at one moment, but which of two
// messages a goroutine of the library takes first is left to the run time: a seed gives much the
// same run, not always an equal one, and a failure leaves its trace in a file.
package sim
