package load

import "net"

// bareCrew are the connections of a bound.
type bareCrew struct {
	loop  *bare // only when it runs in this process
	crowd *crowd
	to    []*reader
	from  []net.Conn
}

// newBareCrew connects n receivers to a bare loop, and a sender for each number of
// them that is to be told, all of them in TLS or none. Without an address the loop
// runs in this process.
func newBareCrew(addr string, n int, told []int, inTLS bool) (b *bareCrew, err error) {
	b = &bareCrew{crowd: newCrowd()}
	defer func() {
		if err != nil {
			b.close()
		}
	}()
	if addr == "" {
		if b.loop, err = newBare(); err != nil {
			return nil, err
		}
		addr = b.loop.l.Addr().String()
	}
	for range n {
		nc, err := dialBare(addr, 0, inTLS)
		if err != nil {
			return b, err
		}
		r := newReader(nc, b.crowd)
		go r.run()
		b.to = append(b.to, r)
	}
	for _, k := range told {
		nc, err := dialBare(addr, k, inTLS)
		if err != nil {
			return b, err
		}
		b.from = append(b.from, nc)
	}
	return b, nil
}

func (b *bareCrew) close() {
	for _, nc := range b.from {
		closeBare(nc)
	}
	for _, r := range b.to {
		closeBare(r.nc)
		<-r.done
	}
	if b.loop != nil {
		b.loop.close()
	}
}
