package cluster

import "fmt"

// Trouble says in one line why no zone change is accepted here; empty: one is.
func (n *Node) Trouble() string {
	r := n.up()
	if r == nil {
		return "the cluster member is starting"
	}
	if err := n.fit(); err != nil {
		return fmt.Sprintf("this member of the cluster has stopped applying changes: %v", err)
	}
	_, id := r.LeaderWithID()
	formed, member := len(n.configuration().Servers) > 0, n.isMember(n.self)
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case !formed && n.strayed:
		return "this device is a member of the cluster with a state that it has lost: have it replaced (inofctl cluster replace)"
	case !formed:
		return "this device is in no cluster yet: " + n.waiting
	case !member:
		return "this device is no member of the cluster any more: take it out of its configuration, or have it added again"
	case n.strayed && id == "":
		return "this device is a member of the cluster with a state that it has lost: have it replaced (inofctl cluster replace)"
	case id != "":
		if n.machine.Cluster() == 0 {
			text := "the cluster has no zones yet: its leader has not made the first entry"
			if n.unseeded != "" {
				text = "the cluster has no zones yet: the first ones cannot be used: " + n.unseeded
			}
			return text
		}
		return ""
	}
	return "this member reaches no majority of its cluster: no zone change is accepted here; host and fault reflection goes on"
}

// lackError is ErrNoLeader with what an operator needs to know.
type lackError struct{ text string }

func (e *lackError) Error() string { return e.text }

func (e *lackError) Unwrap() error { return ErrNoLeader }

func (n *Node) noLeader(why error) error { return &lackError{fmt.Sprintf("%s (%v)", n.lack(), why)} }

// lack is Trouble for errors of changes.
func (n *Node) lack() string {
	if text := n.Trouble(); text != "" {
		return text
	}
	return "the leader of the cluster did not answer"
}

// fit reports whether this member can apply what it would decide on.
func (n *Node) fit() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.machine.Halted()
}
