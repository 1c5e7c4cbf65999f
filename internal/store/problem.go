package store

import "fmt"

// Problem is something that an operator should know of what was kept.
type Problem struct {
	Where string // file, or table and key in it
	Err   error
	Lost  string // what it may cost
	Do    string
}

func (p *Problem) Error() string {
	return fmt.Sprintf("%s: %v: %s; %s", p.Where, p.Err, p.Lost, p.Do)
}

// Unwrap gives what is wrong.
func (p *Problem) Unwrap() error { return p.Err }
