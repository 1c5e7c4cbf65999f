package model

import (
	"math"
	"testing"
)

func TestPublishedHeadroomFigures(t *testing.T) {
	if got := Qbb100G(100, 9216); got != 86_992 {
		t.Errorf("802.1Qbb sum at 100G, 100 m, 9216 B: %d, want 86992", got)
	}
	for m, want := range map[float64]float64{5: 106, 40: 119, 300: 215} {
		if got := Sonic100G(m); math.Abs(got-want) > 0.5 {
			t.Errorf("SONiC formula at %g m: %.1f KiB, want %g", m, got, want)
		}
	}
	if d := KM(70); d != 350*Microsecond {
		t.Errorf("70 km take %v", d)
	}
	// Distance check: 100 km at 100G need 12,500 kB for the wire both ways.
	if b := (100 * Gbps).Bytes(2 * KM(100)); b != 12_500_000 {
		t.Errorf("100 km at 100G hold %d bytes", b)
	}
}

func TestParseUnits(t *testing.T) {
	for in, want := range map[string]Time{"1us": Microsecond, "2.5 ms": 2500 * Microsecond, "83.84ns": 83840, "7ps": 7, "0": 0, "3s": 3 * Second} {
		if got, err := ParseTime(in); err != nil || got != want {
			t.Errorf("ParseTime(%q) = %v, %v; want %v", in, got, err, want)
		}
	}
	for _, in := range []string{"", "1", "us", "-1us", "1 m", "1e300s", "nans"} {
		if got, err := ParseTime(in); err == nil {
			t.Errorf("ParseTime(%q) = %v, want an error", in, got)
		}
	}
	for in, want := range map[string]Rate{"100G": 100 * Gbps, "40Gb/s": 40 * Gbps, "25 Gbps": 25 * Gbps, "200M": 200 * Mbps, "1.6T": 1600 * Gbps} {
		if got, err := ParseRate(in); err != nil || got != want {
			t.Errorf("ParseRate(%q) = %v, %v; want %v", in, got, err, want)
		}
	}
	for _, in := range []string{"", "G", "-1G", "0", "1e99", "fast"} {
		if got, err := ParseRate(in); err == nil {
			t.Errorf("ParseRate(%q) = %v, want an error", in, got)
		}
	}
	for in, want := range map[string]int64{"4096": 4096, "32MiB": 32 << 20, "10 KB": 10_000, "64KiB": 65536, "1.5MB": 1_500_000} {
		if got, err := ParseSize(in); err != nil || got != want {
			t.Errorf("ParseSize(%q) = %v, %v; want %v", in, got, err, want)
		}
	}
}

// Qbb100G gives the worst case of 802.1Qbb annex O at 100G in bytes: two frames, the
// PFC frame, the cable both ways, the response of the peer and both PHYs.
func Qbb100G(metres float64, mtu int32) int64 {
	cable := int64(2 * metres * 5e-9 * 100e9 / 8)
	return 2*int64(mtu+frameGap) + pfcFrame + frameGap + cable + (quanta100Response+2*quanta100PHY)*64
}

// Sonic100G gives the XOFF size in KiB that SONiC's dynamic buffer model computes for
// a 100G port: a lossless frame, and three bytes of cells for each byte that may
// still come (the worst frame size for the cells).
func Sonic100G(metres float64) float64 {
	const (
		light    = 198e6 // metres a second in fibre
		lossless = 1500. / 1024
		portMTU  = 9100. / 1024
		macPHY   = 0.8
		response = quanta100Response * 64. / 1024
		cells    = 3
	)
	cable := 2 * metres / light * 100e9 / 8 / 1024
	return lossless + cells*(portMTU+cable+macPHY+response)
}
