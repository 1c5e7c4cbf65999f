// Package chaos breaks a lab at random, by a seed, and judges every notice that any
// host agent receives against a truth that is computed apart from the daemons.
//
// It stands above testbed, whose labs it builds and breaks, and below the command
// line (`inofctl lab chaos`). Nothing of the daemons' rooms is used to find out what
// is true: that follows from the faults alone.
//
// # A run
//
// A run is a row of rounds. In a round faults strike for some seconds (see Kinds),
// overlapping each other, as Plan drew them from the seed. Then everything is healed, and
// the round waits, with a bound, until the fabric is whole again and every host's last word
// about every other address is the truth. Then it watches a little longer for notices
// that must not come.
//
// # What is unexpected
//
// Slowness is no mistake here, since the machine may be busy; being wrong is. A notice
// is unexpected when
//
//   - it says what was true at no moment since the last quiet one, or says it before
//     it was true: this holds for zones, cables, registrations and paths alike;
//   - it comes out of order: the words about one subject follow the order in which
//     they were true, with any left out. (Where two causes of different origin
//     changed since the last quiet moment, say a zone and a cable, or a cable and a
//     registration at a switch that was stopped, devices may learn of them in either
//     order; then each is looked at by itself.)
//   - it repeats the last word without a reason to: see below;
//   - a host is told first of a subject that it is inactive;
//   - its reason is another one (but a switch that was restarted may say aged-out where
//     a zone has ended: it knows neither of what it is not concerned with any more);
//   - a frame that is repeated because no ack came is not the last word any more.
//
// # Repetitions that are allowed
//
// A host may be told once more of an address that is active, as it was told before,
// once for each of these since the last quiet moment, and never else: a zone query that
// its agent sent (it is answered in full); a loss of carrier of its own port (it is told all
// its active peers again once it is heard); its own withdrawal (it is a new host when it comes
// back). These are counted; no time window excuses anything.
//
// # Damaged frames
//
// A veth pair has no cable that could damage a frame and no CRC. What it has is a
// check of the length, and the kernel counts frames above the MTU as dropped at the port
// that they arrive at (testbed.Lab.Damage). The access switches' configuration names
// that counter as the one of damaged frames and has them shut the port; all that follows is as it
// would be with a bad cable. The frames keep coming until the kernel shows the port shut.
// From the first one on the others may be told packet-error, and then nothing else; once
// the port is shut they must be. It must stay shut until it is opened, by hand after
// a while, or now and then by itself after 30 s, whatever happens to the daemon.
// Its host loses carrier meanwhile, as with a pulled cable.
//
// # Full disks
//
// Access switches have small disks of their own (disk.go). While one is full its daemon is not
// restarted, nor until it has saved what it could not: a restart would repeat notices then, which
// it says itself.
//
// # Clocks
//
// The wall clock that a switch's daemon reads is set by a second to 40 years, forward or back, and
// set right after a while, also while it starts (clock.go). Nothing follows from it: no notice is
// allowed or excused because of it.
//
// # What is missing
//
// After a round, a host's last word about an address is not what is true; or its
// agent, which forgets when its link goes down or it is started, was not told again.
// A query that came while the switch had no daemon is lost, which no switch can know;
// agents of that kind are counted and excused from the latter rule. Of what is not
// active a host must be told only if its agent remembers that it was told of it, and
// of the end of a zone not when the subject was unreachable and ages out meanwhile.
package chaos
