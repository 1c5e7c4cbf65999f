package scenario

import (
	"flag"
	"os"
	"testing"
)

var updateReference = flag.Bool("update-reference", false, "write docs/model-keys.md anew")

// The reference of keys is that of the declarations.
func TestReferenceIsWritten(t *testing.T) {
	const name = "../../docs/model-keys.md"
	got := Reference()
	if *updateReference {
		if err := os.WriteFile(name, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(name)
	if err != nil || string(want) != got {
		t.Errorf("%s is not what the declarations say (%v): go test ./model/scenario -run Reference -update-reference", name, err)
	}
}
