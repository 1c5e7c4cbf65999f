package snsd

import (
	"encoding/json"
	"testing"
)

func TestTextFormsAreInverse(t *testing.T) {
	type all struct {
		Role     Role
		Protocol Protocol
		State    State
		Reason   Reason
	}
	for i := range 256 {
		want := all{Role(i), Protocol(i), State(i), Reason(i)}
		b, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		var got all
		if err := json.Unmarshal(b, &got); err != nil || got != want {
			t.Errorf("%s read as %+v, %v", b, got, err)
		}
	}
	var r Role
	for _, s := range []string{"", "256", "-1", "server"} {
		if err := r.UnmarshalText([]byte(s)); err == nil {
			t.Errorf("role %q was taken", s)
		}
	}
}
