package engine

import (
	"slices"
	"testing"
)

// TestSettings_Values checks what SHOW shows after SET, and what is refused.
func TestSettings_Values(t *testing.T) {
	cases := []struct {
		name, in, want string
		refused        bool
	}{
		{name: "statement_timeout", in: "1500", want: "1500ms"},
		{name: "statement_timeout", in: "2min", want: "2min"},
		{name: "statement_timeout", in: "2 h", want: "2h"},
		{name: "statement_timeout", in: "-1", refused: true},
		{name: "statement_timeout", in: "3 parsecs", refused: true},
		{name: "timezone", in: "Asia/Calcutta", want: "Asia/Calcutta"},
		{name: "timezone", in: "utc", want: "UTC"},
		{name: "timezone", in: "Foo/Bar", refused: true},
		{name: "client_encoding", in: "unicode", want: "UTF8"},
		{name: "client_encoding", in: "LATIN1", refused: true},
		{name: "extra_float_digits", in: "3", want: "3"},
		{name: "extra_float_digits", in: "4", refused: true},
		{name: "application_name", in: "a\nb", want: "a?b"},
		{name: "default_transaction_isolation", in: "SERIALIZABLE", refused: true},
		{name: "bytea_output", in: "Escape", want: "escape"},
		{name: "nosuch", in: "1", refused: true},
		{name: "my.own", in: "x", want: "x"},
	}
	for _, c := range cases {
		got, err := checkSetting(c.name, []string{c.in})
		if c.refused != (err != nil) {
			t.Errorf("SET %s = %q: error %v", c.name, c.in, err)
		} else if !c.refused && got != c.want {
			t.Errorf("SET %s = %q shows %q, want %q", c.name, c.in, got, c.want)
		}
	}
}

// TestSettings_Transaction puts back what a transaction set: LOCAL always, the rest when it rolls back.
func TestSettings_Transaction(t *testing.T) {
	st := newSettings()
	st.begin()
	st.set("application_name", "in", false)
	st.set("timezone", "Europe/Paris", true)
	st.end(false)
	if got := st.value("application_name"); got != "" {
		t.Errorf("after a rollback application_name is %q", got)
	}
	st.begin()
	st.set("application_name", "kept", false)
	st.set("timezone", "Europe/Paris", true)
	if got := st.value("timezone"); got != "Europe/Paris" {
		t.Errorf("SET LOCAL shows %q", got)
	}
	st.end(true)
	if a, z := st.value("application_name"), st.value("timezone"); a != "kept" || z != "UTC" {
		t.Errorf("after a commit: %q, %q", a, z)
	}
}

// TestSearchPath_RoundTrip reads what it writes.
func TestSearchPath_RoundTrip(t *testing.T) {
	words := []string{"$user", "public", `Odd "one`, "a,b", "ünï"}
	if got := splitSearchPath(joinSearchPath(words)); !slices.Equal(got, words) {
		t.Errorf("got %q", got)
	}
	if got := splitSearchPath(` Foo , "Bar"`); !slices.Equal(got, []string{"foo", "Bar"}) {
		t.Errorf("got %q", got)
	}
}
