package carrier

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cilium/ebpf"

	"github.com/openinof/inof/fabric"
)

func TestTheObjectIsOfThisSource(t *testing.T) {
	sums, err := os.ReadFile("bpf/carrier.sum")
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Split(strings.TrimSpace(string(sums)), "\n") {
		sum, name, _ := strings.Cut(line, "  ")
		data, err := os.ReadFile(filepath.Join("bpf", name))
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprintf("%x", sha256.Sum256(data)); got != sum {
			t.Errorf("%s has changed since the object was made: go generate ./fabric/linux/carrier", name)
		}
	}
}

func TestEachWayHasItsProgram(t *testing.T) {
	spec, err := ebpf.LoadCollectionSpecFromReader(strings.NewReader(string(object)))
	if err != nil {
		t.Fatal(err)
	}
	for _, how := range Ways() {
		name, err := program(how)
		if err != nil {
			t.Logf("%s: %v", how, err)
			continue
		}
		if spec.Programs[name] == nil {
			t.Errorf("%s: the object has no program %s", how, name)
		}
		if !slices.Contains(fabric.CarrierSources(), how) {
			t.Errorf("%s cannot be configured", how)
		}
	}
	if _, err := open("smoke signals", 1); err == nil {
		t.Error("a way that there is not was opened")
	}
}

func TestWordsAreReadAsTheProgramWritesThem(t *testing.T) {
	now := time.Now()
	word := []byte{0x00, 0xca, 0x9a, 0x3b, 0, 0, 0, 0, // at: 1 s
		7, 0, 0, 0, // index
		9, 1, 0, 0, // changes
		0, 1, // carrier, running
		0, 0, 0, 0, 0, 0}
	got, err := parse(word, now, time.Second+time.Millisecond)
	want := Word{Index: 7, Running: true, Changes: 265, At: now.Add(-time.Millisecond)}
	if err != nil || got != want {
		t.Errorf("read %+v, %v, want %+v", got, err, want)
	}
	if w, _ := parse(word, now, 0); !w.At.Equal(now) {
		t.Errorf("a word of the future is of %v, want now", w.At)
	}
	for _, n := range []int{0, 1, size - 1} {
		if _, err := parse(word[:n], now, 0); !errors.Is(err, ErrWord) {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
}

func TestTheReasonOfEachWayThatDoesNotGoIsSaid(t *testing.T) {
	w, err := Open("smoke signals", "drums")
	if w != nil || err == nil || !strings.Contains(err.Error(), "smoke signals: ") || !strings.Contains(err.Error(), "drums: ") {
		t.Errorf("opened %v: %v", w, err)
	}
}

func TestASymbolThatIsNotThereIsAnError(t *testing.T) {
	if _, err := address("no_such_function_of_the_kernel"); err == nil {
		t.Error("an address was found")
	}
}
