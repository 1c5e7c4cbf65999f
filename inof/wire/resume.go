package wire

import "fmt"

// ResumeKind tells how one direction of a session began.
type ResumeKind struct {
	Done    bool   // it is known
	Resumed bool   // only what was missed was sent; false: everything
	Why     string // for a person
}

func (k ResumeKind) String() string {
	switch {
	case !k.Done:
		return ""
	case k.Resumed:
		return "resumed"
	}
	return "full"
}

func resumed(after uint64) ResumeKind {
	return ResumeKind{Done: true, Resumed: true, Why: fmt.Sprintf("after change %d", after)}
}

// Full is a full sync for a reason.
func Full(why string) ResumeKind { return ResumeKind{Done: true, Why: why} }

// CheckResume reports whether a log that begins after base and ends at seq covers
// what a receiver has missed.
func CheckResume(r *Resume, epoch, base, seq uint64) ResumeKind {
	switch {
	case r == nil:
		return Full("nothing to resume from")
	case r.Epoch != epoch:
		return Full("the sender has restarted since")
	case r.Seq < base:
		return Full("too much has changed since")
	case r.Seq > seq:
		return Full("the receiver has seen more than was sent")
	}
	return resumed(r.Seq)
}
