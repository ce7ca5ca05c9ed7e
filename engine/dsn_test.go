package engine

import "testing"

// TestParseDSN_Forms reads both forms of libpq's connection strings into the same keywords.
func TestParseDSN_Forms(t *testing.T) {
	cases := []struct{ in, want string }{
		{"postgres://u:p%40w@h:5433/db?sslmode=require", `dbname='db' host='h' password='p@w' port='5433' sslmode='require' user='u'`},
		{"postgresql:///db?host=/run/pg", `dbname='db' host='/run/pg'`},
		{"postgres://u@h1:1,h2:2/db", `dbname='db' host='h1,h2' port='1,2' user='u'`},
		{"postgres://u@[::1]:5432/db", `dbname='db' host='::1' port='5432' user='u'`},
		{"postgres://%2Frun%2Fpg/db", `dbname='db' host='/run/pg'`},
		{`host=h password='it''s' user=u`, `host='h' password='it' s' user='u'`},
		{`host = h  password = 'a\'b\\c' dbname=db`, `dbname='db' host='h' password='a\'b\\c'`},
		{"", ""},
	}
	for _, c := range cases {
		if c.in == `host=h password='it''s' user=u` {
			if _, err := parseDSN(c.in); err == nil {
				t.Errorf("%s: libpq knows no doubled quotes, but it was read", c.in)
			}
			continue
		}
		d, err := parseDSN(c.in)
		if err != nil {
			t.Errorf("%s: %v", c.in, err)
			continue
		}
		if got := d.String(); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.in, got, c.want)
		}
	}
}

// TestParseDSN_ErrorsHoldNoPassword keeps what may be a secret out of messages.
func TestParseDSN_ErrorsHoldNoPassword(t *testing.T) {
	for _, in := range []string{"postgres://u:se%cret@h/db", "host=h password='secret"} {
		_, err := parseDSN(in)
		if err == nil {
			t.Errorf("%s was read", in)
		} else if got := err.Error(); containsAny(got, []string{"se%cret", "secret"}) {
			t.Errorf("the error shows the password: %s", got)
		}
	}
}
