package workload

import "math"

// ln2 in two parts: the first has so few bits that its product with an exponent is exact.
const (
	ln2High = 0x1.62e42feep-1
	ln2Low  = math.Ln2 - ln2High
)

// ln gives the natural logarithm of x > 0, with the same bits on every machine: math.Log is
// in assembly on some, and a compiler may fuse a product with a sum, except where
// the product is converted explicitly (Go specification, "Floating-point operators").
//
// With x = m 2^e and s = (m-1)/(m+1), |s| < 0.172: ln x = e ln 2 + 2 (s + s^3/3 + s^5/5 + ...).
func ln(x float64) float64 {
	m, e := math.Frexp(x)
	if m < math.Sqrt2/2 {
		m, e = 2*m, e-1
	}
	s := (m - 1) / (m + 1)
	z := float64(s * s)
	sum := 0.0
	for k := 25; k >= 1; k -= 2 {
		sum = float64(sum*z) + 1/float64(k)
	}
	return float64(float64(e)*ln2High) + (float64(2*float64(s*sum)) + float64(float64(e)*ln2Low))
}
