package lldp

import (
	"bytes"
	"errors"
	"testing"
)

func FuzzParseRow(f *testing.F) {
	f.Add([]byte("eth1\x00x"), make([]byte, rowHead))
	f.Add([]byte("eth1\x00x"), append(make([]byte, rowHead-1), 1, 4, 192, 0, 2, 1, 0, 0, 0, 0, 0, 0, 0, 0, 2, 7))
	f.Add([]byte("eth1\x00x"), append(make([]byte, rowHead-1), 1, rowMAC|4, 192, 0, 2, 1, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 9, 2, 7, 4, 2, 0, 0, 0, 0, 8))
	f.Fuzz(func(t *testing.T, key, row []byte) {
		n, err := ParseRow(key, row)
		if err != nil {
			if !errors.Is(err, ErrRow) {
				t.Error(err)
			}
			return
		}
		if back := n.AppendRow(nil); !bytes.Equal(back, row) {
			t.Errorf("%x\n%x", row, back)
		}
		_ = NewTable(Limits{}).Restore([]Neighbour{n}, at(0))
	})
}
