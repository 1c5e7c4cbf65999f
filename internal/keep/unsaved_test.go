package keep

import (
	"os"
	"path/filepath"
	"testing"
)

// A process that is killed while it empties a file, whose rows the database has, leaves one that is
// sound and empty: nothing is in doubt.
func TestAKillWhileAFileIsEmptiedLosesNothing(t *testing.T) {
	prefix := filepath.Join(t.TempDir(), "unsaved")
	const id = 42
	u, err := openUnsaved(prefix, id, 7)
	if err != nil {
		t.Fatal(err)
	}
	defer u.close()
	if err := u.add([]Row{{Table: "t", Key: []byte("first"), Value: []byte("1")}}); err != nil {
		t.Fatal(err)
	}
	u.turn()
	if err := u.add([]Row{{Table: "t", Key: []byte("second"), Value: []byte("2")}}); err != nil {
		t.Fatal(err)
	}
	// A file that takes no write at a place ends reset where a kill would.
	emptied := 1 - u.at
	whole := u.files[emptied]
	defer whole.Close()
	if u.files[emptied], err = os.OpenFile(unsavedPath(prefix, emptied), os.O_RDWR|os.O_APPEND, 0); err != nil {
		t.Fatal(err)
	}
	if err := u.committed(); err == nil {
		t.Fatal("the file was written: this test shows nothing")
	}
	rows, gen, err := readUnsaved(prefix, id)
	if err != nil || len(rows) != 1 || string(rows[0].Key) != "second" || gen != u.gens[u.at] {
		t.Errorf("rows %v of generation %d: %v", rows, gen, err)
	}
}
