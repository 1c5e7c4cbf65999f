package inof

import "slices"

// keyList holds keys in an order in which walks can go through them a few at a time
// while keys come and go: from the end to the beginning. A key that comes is put at
// the end, where a walk has been. One that goes leaves a hole until no walk is under
// way. So a walk visits each key once that is there throughout.
type keyList[K comparable] struct {
	list  []K // with zero keys as holes
	at    map[K]int32
	holes []int32
}

func newKeyList[K comparable]() keyList[K] { return keyList[K]{at: map[K]int32{}} }

func (l *keyList[K]) add(k K) {
	if _, ok := l.at[k]; !ok {
		l.at[k] = int32(len(l.list))
		l.list = append(l.list, k)
	}
}

// remove takes a key out; walked tells whether a walk is under way.
func (l *keyList[K]) remove(k K, walked bool) {
	i, ok := l.at[k]
	if !ok {
		return
	}
	delete(l.at, k)
	if walked {
		var hole K
		l.list[i] = hole
		l.holes = append(l.holes, i)
		return
	}
	l.fill(i)
}

// fill closes a hole with the last key.
func (l *keyList[K]) fill(i int32) {
	var none K
	last := len(l.list) - 1
	if k := l.list[last]; int(i) < last {
		l.list[i], l.at[k] = k, i
	}
	l.list[last] = none
	l.list = l.list[:last]
}

// tidy closes the holes when the last walk has ended.
func (l *keyList[K]) tidy() {
	slices.Sort(l.holes)
	for _, i := range slices.Backward(l.holes) { // what is behind it is no hole any more
		l.fill(i)
	}
	l.holes = nil
}

// ahead tells whether a walk that has come down to an index has the key before it.
func (l *keyList[K]) ahead(k K, index int) bool {
	i, ok := l.at[k]
	return ok && int(i) < index
}
