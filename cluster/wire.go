package cluster

import "encoding/binary"

// reader takes fields from bytes; the first error sticks.
type reader struct {
	b     []byte
	where string
	err   error
}

func (r *reader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = broken(r.where, format, args...)
	}
	r.b = nil
}

func (r *reader) take(what string, n int) []byte {
	if r.err == nil && (n < 0 || n > len(r.b)) {
		r.fail("%s: %d bytes are left, want %d", what, len(r.b), n)
	}
	if r.err != nil {
		return nil
	}
	v := r.b[:n:n]
	r.b = r.b[n:]
	return v
}

func (r *reader) u8(what string) uint8 {
	if v := r.take(what, 1); v != nil {
		return v[0]
	}
	return 0
}

func (r *reader) u16(what string) uint16 {
	if v := r.take(what, 2); v != nil {
		return binary.BigEndian.Uint16(v)
	}
	return 0
}

func (r *reader) u32(what string) uint32 {
	if v := r.take(what, 4); v != nil {
		return binary.BigEndian.Uint32(v)
	}
	return 0
}

func (r *reader) u64(what string) uint64 {
	if v := r.take(what, 8); v != nil {
		return binary.BigEndian.Uint64(v)
	}
	return 0
}

// flag takes an octet that is 0 or 1.
func (r *reader) flag(what string) bool {
	v := r.u8(what)
	if r.err == nil && v > 1 {
		r.fail("%s is %d, want 0 or 1", what, v)
	}
	return v == 1
}

// text takes a length of 16 bits and that many bytes, at most limit.
func (r *reader) text(what string, limit int) string {
	n := int(r.u16(what))
	if r.err == nil && n > limit {
		r.fail("%s: length %d, at most %d", what, n, limit)
	}
	return string(r.take(what, n))
}

// bytes takes a length of 32 bits and that many bytes, at most limit; the result is
// a part of the input.
func (r *reader) bytes(what string, limit int) []byte {
	n := r.u32(what)
	if r.err == nil && int64(n) > int64(limit) {
		r.fail("%s: length %d, at most %d", what, n, limit)
	}
	return r.take(what, int(n))
}

// count takes a number of things of which each needs at least size bytes.
func (r *reader) count(what string, limit, size int) int {
	n := r.u32(what)
	if r.err == nil && (int64(n) > int64(limit) || int64(n)*int64(size) > int64(len(r.b))) {
		r.fail("%s: %d, at most %d and what %d bytes can hold", what, n, limit, len(r.b))
	}
	if r.err != nil {
		return 0
	}
	return int(n)
}

// end fails when something is left.
func (r *reader) end() error {
	if r.err == nil && len(r.b) > 0 {
		r.fail("%d bytes follow the end", len(r.b))
	}
	return r.err
}
