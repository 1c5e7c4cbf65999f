package fabric

// CarrierSource says by what a dataplane hears that a port has lost its carrier, before the
// kernel's netlink tells it.
type CarrierSource string

// The sources. All but the first and the last are functions of the kernel that notice it, the
// best first.
const (
	CarrierAuto       CarrierSource = "auto"       // the best that kernel and rights allow
	CarrierFentry     CarrierSource = "fentry"     // all changes, at once
	CarrierKprobe     CarrierSource = "kprobe"     // the same, for kernels without fentry
	CarrierTracepoint CarrierSource = "tracepoint" // those that the kernel does not hold back
	CarrierNetlink    CarrierSource = "netlink"    // none
)

// CarrierSources are all there are.
func CarrierSources() []CarrierSource {
	return []CarrierSource{CarrierAuto, CarrierFentry, CarrierKprobe, CarrierTracepoint, CarrierNetlink}
}

// CarrierTeller is a Dataplane that says which source is in use, and why no better one.
type CarrierTeller interface {
	CarrierSource() (source CarrierSource, why string)
}
