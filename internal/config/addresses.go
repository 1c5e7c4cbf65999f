package config

import (
	"fmt"
	"net/netip"
	"path/filepath"
	"strings"

	"github.com/openinof/inof/internal/setting"
)

// allowedAddr is what errors about addresses of devices say.
const allowedAddr = "an IPv4 or IPv6 unicast address, not loopback (unless device.allow-loopback), link-local, multicast or unspecified"

// checkAddr says what keeps a from being a device's or host's service address.
func checkAddr(a netip.Addr, loopback bool) string {
	switch {
	case a.Zone() != "":
		return "has a scope zone"
	case a.Is4In6():
		return "is an IPv4 address in IPv6 form"
	case a.IsUnspecified():
		return "is the unspecified address"
	case a.IsMulticast() || a == netip.AddrFrom4([4]byte{255, 255, 255, 255}):
		return "is a group address"
	case a.IsLinkLocalUnicast():
		return "is a link-local address"
	case a.IsLoopback() && !loopback:
		return "is a loopback address"
	}
	return ""
}

// address is a setting that is the address of a device; without one it is invalid.
func (c *Config) address(key string, v *netip.Addr, doc string) setting.Setting {
	return setting.Value(key, v, netip.Addr{}, allowedAddr, doc, func(t string) (netip.Addr, string) {
		return parseAddr(t, c.Device.AllowLoopback)
	}, addrText).Documented("", asDeviceID)
}

// asDeviceID is what the document says of addresses but the first.
const asDeviceID = "as `device.id`"

// addrText leaves an unset address empty.
func addrText(a netip.Addr) string {
	if !a.IsValid() {
		return ""
	}
	return a.String()
}

func parseAddr(v string, loopback bool) (netip.Addr, string) {
	a, err := netip.ParseAddr(v)
	if err != nil {
		return a, "is not an IP address"
	}
	return a, checkAddr(a, loopback)
}

// parseListen takes address:port, and an address alone with the default port.
func parseListen(v string, loopback bool) (netip.AddrPort, string) {
	ap, err := netip.ParseAddrPort(v)
	if err != nil {
		a, err := netip.ParseAddr(v)
		if err != nil {
			return ap, "is not an address and port"
		}
		ap = netip.AddrPortFrom(a, DefaultPort)
	}
	if p := ap.Port(); p < MinPort || p > MaxPort {
		return ap, fmt.Sprintf("has the port %d", p)
	}
	if ap.Addr().IsUnspecified() {
		return ap, "" // all local addresses
	}
	return ap, checkAddr(ap.Addr(), loopback)
}

const allowedPath = "an absolute path"

func checkPath(v string) string {
	switch {
	case !filepath.IsAbs(v):
		return "is not an absolute path"
	case strings.ContainsRune(v, 0):
		return "has a NUL byte"
	}
	return ""
}

// maxSocketPath is the room for a path in the kernel's sockaddr_un, in bytes.
const maxSocketPath = 107

var allowedSocket = fmt.Sprintf("an absolute path of at most %d bytes", maxSocketPath)

func checkSocket(v string) string {
	if len(v) > maxSocketPath {
		return fmt.Sprintf("has %d bytes", len(v))
	}
	return checkPath(v)
}
