package gnmi

import (
	"crypto/sha256"
	"encoding/hex"
	"net/netip"
)

func sumOf(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

func addr(text string) netip.Addr { return netip.MustParseAddr(text) }
