package gnmi

import (
	"crypto/sha256"
	"encoding/hex"
)

func sumOf(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}
