package engine

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	_ "time/tzdata" // zones are known wherever the server runs

	"github.com/jackc/pgerrcode"

	"sluice/engine/pgcodec"
	"sluice/engine/pgerr"
)

// serverVersion is what clients are told: the PostgreSQL whose catalogs and answers Sluice follows.
const serverVersion = "15.0"

// setting is one of PostgreSQL's run-time parameters (manual, chapter 20 "Server Configuration").
type setting struct {
	name     string // as PostgreSQL writes it
	value    string // default
	reported bool   // sent as ParameterStatus (manual, 55.2.7 "Asynchronous Operations")
	fixed    bool   // cannot be changed; SET to the value it has is accepted
	unit     bool   // a duration: bare numbers are milliseconds
	check    func(string) (string, error)
}

// settingTable lists the parameters there are. One that has no effect here is either fixed to what is true or missing,
// so that nothing is accepted and ignored.
var settingTable = []setting{
	{name: "server_version", value: serverVersion, reported: true, fixed: true},
	{name: "server_version_num", value: "150000", fixed: true},
	{name: "server_encoding", value: "UTF8", reported: true, fixed: true},
	{name: "client_encoding", value: "UTF8", reported: true, check: checkEncoding},
	{name: "application_name", value: "", reported: true, check: checkApplicationName},
	{name: "is_superuser", value: "off", reported: true, fixed: true},
	{name: "session_authorization", value: "", reported: true, fixed: true},
	{name: "DateStyle", value: "ISO, MDY", reported: true, check: checkDateStyle},
	{name: "IntervalStyle", value: "postgres", reported: true, check: checkIntervalStyle},
	{name: "TimeZone", value: "UTC", reported: true, check: checkTimeZone},
	{name: "integer_datetimes", value: "on", reported: true, fixed: true},
	{name: "standard_conforming_strings", value: "on", reported: true, fixed: true},
	{name: "default_transaction_read_only", value: "off", reported: true, check: checkBool},
	{name: "in_hot_standby", value: "off", reported: true, fixed: true},
	{name: "default_transaction_isolation", value: "repeatable read", check: checkIsolation},
	{name: "default_transaction_deferrable", value: "off", check: checkBool},
	{name: "transaction_isolation", value: "repeatable read", check: checkIsolation},
	{name: "transaction_read_only", value: "off", check: checkBool},
	{name: "transaction_deferrable", value: "off", check: checkBool},
	{name: "extra_float_digits", value: "1", check: checkInt(-15, 3)},
	{name: "bytea_output", value: "hex", check: oneOf("hex", "escape")},
	{name: "client_min_messages", value: "notice", check: oneOf("debug5", "debug4", "debug3", "debug2", "debug1", "log", "notice", "warning", "error")},
	{name: "search_path", value: `"$user", public`},
	{name: "statement_timeout", value: "0", unit: true, check: checkDuration},
	{name: "lock_timeout", value: "0", unit: true, check: checkZeroDuration},
	{name: "idle_in_transaction_session_timeout", value: "0", unit: true, check: checkDuration},
	{name: "idle_session_timeout", value: "0", unit: true, check: checkDuration},
	{name: "max_identifier_length", value: "63", fixed: true},
	{name: "max_index_keys", value: "32", fixed: true},
	{name: "block_size", value: "8192", fixed: true},
	{name: "lc_collate", value: "C.UTF-8", fixed: true},
	{name: "lc_ctype", value: "C.UTF-8", fixed: true},
	{name: "ssl", value: "off", fixed: true},
	{name: "row_security", value: "on", check: checkBool},
	{name: "quote_all_identifiers", value: "off", fixed: true},
	{name: "synchronous_commit", value: "on", fixed: true},
}

// settingByName finds a parameter; names are case-insensitive.
var settingByName = func() map[string]*setting {
	m := make(map[string]*setting, len(settingTable))
	for i := range settingTable {
		m[strings.ToLower(settingTable[i].name)] = &settingTable[i]
	}
	return m
}()

// settingsState holds a session's values. Values that a transaction set are undone when it rolls back; those it set
// with LOCAL are undone when it ends.
type settingsState struct {
	initial map[string]string // after start-up: what RESET goes back to
	session map[string]string
	local   map[string]string // nil outside of a transaction or where nothing was set
	saved   map[string]string // session's values when the transaction began; nil outside of one
	version int               // counts changes that DuckDB or the encoders must hear of
}

// newSettings has every parameter's default.
func newSettings() *settingsState {
	st := &settingsState{session: make(map[string]string, len(settingTable))}
	for i := range settingTable {
		st.session[strings.ToLower(settingTable[i].name)] = settingTable[i].value
	}
	return st
}

// get reads a value; name is in lower case.
func (st *settingsState) get(name string) (string, bool) {
	if v, ok := st.local[name]; ok {
		return v, true
	}
	v, ok := st.session[name]
	return v, ok
}

// value reads a value of the table.
func (st *settingsState) value(name string) string {
	v, _ := st.get(name)
	return v
}

// all returns every value by lower-case name.
func (st *settingsState) all() map[string]string {
	m := maps.Clone(st.session)
	maps.Copy(m, st.local)
	return m
}

// set stores a checked value.
func (st *settingsState) set(name, value string, local bool) {
	if !strings.HasPrefix(name, "transaction_") { // those are the engine's own
		st.version++
	}
	if local {
		if st.local == nil {
			st.local = map[string]string{}
		}
		st.local[name] = value
		return
	}
	delete(st.local, name)
	st.session[name] = value
}

// begin remembers the values that a rollback goes back to.
func (st *settingsState) begin() {
	if st.saved == nil {
		st.saved = maps.Clone(st.session)
	}
}

// end drops LOCAL values, and goes back to the ones before the transaction unless it committed.
func (st *settingsState) end(committed bool) {
	if !committed && st.saved != nil && !maps.Equal(st.session, st.saved) {
		st.session = st.saved
		st.version++
	}
	for name := range st.local {
		if !strings.HasPrefix(name, "transaction_") {
			st.version++
		}
	}
	st.saved, st.local = nil, nil
}

// checkSetting turns the words of SET into the value that SHOW will show.
func checkSetting(name string, words []string) (string, error) {
	def, ok := settingByName[name]
	if !ok {
		if strings.Contains(name, ".") { // a placeholder of an extension, as PostgreSQL takes it
			return strings.Join(words, ", "), nil
		}
		return "", pgerr.Newf(pgerrcode.UndefinedObject, "unrecognized configuration parameter %q", name)
	}
	value := strings.Join(words, ", ")
	if def.fixed {
		return value, nil
	}
	if def.name == "search_path" {
		return joinSearchPath(words), nil
	}
	if def.check == nil {
		return value, nil
	}
	checked, err := def.check(value)
	if err != nil {
		return "", pgerr.Newf(pgerrcode.InvalidParameterValue, "invalid value for parameter %q: %q", def.name, value).
			WithDetail(err.Error())
	}
	return checked, nil
}

// joinSearchPath writes a list of schemas as PostgreSQL shows it, quoted where need be.
func joinSearchPath(words []string) string {
	out := make([]string, 0, len(words))
	for _, w := range words {
		if w == "" || strings.ContainsFunc(w, func(r rune) bool {
			return !(r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '_')
		}) {
			w = quoteIdent(w)
		}
		out = append(out, w)
	}
	return strings.Join(out, ", ")
}

// splitSearchPath is the inverse of joinSearchPath, for values that came as one text.
func splitSearchPath(value string) []string {
	var out []string
	for s := strings.TrimSpace(value); s != ""; {
		var word string
		if s[0] == '"' {
			end := 1
			for end < len(s) && (s[end] != '"' || end+1 < len(s) && s[end+1] == '"') {
				if s[end] == '"' {
					end++
				}
				end++
			}
			word, s = strings.ReplaceAll(s[1:min(end, len(s))], `""`, `"`), s[min(end+1, len(s)):]
		} else {
			end := strings.IndexByte(s, ',')
			if end < 0 {
				end = len(s)
			}
			word, s = strings.ToLower(strings.TrimSpace(s[:end])), s[end:]
		}
		if word != "" {
			out = append(out, word)
		}
		s = strings.TrimLeft(s, ", \t\n")
	}
	return out
}

// oneOf accepts a fixed list of words in any case.
func oneOf(words ...string) func(string) (string, error) {
	return func(v string) (string, error) {
		if l := strings.ToLower(v); slices.Contains(words, l) {
			return l, nil
		}
		return "", fmt.Errorf("available values: %s", strings.Join(words, ", "))
	}
}

// booleanWords are PostgreSQL's words for on and off, and how much of each must be there (manual, 20.1.1).
var booleanWords = []struct {
	word, means string
	least       int
}{
	{"true", "on", 1},
	{"false", "off", 1},
	{"yes", "on", 1},
	{"no", "off", 1},
	{"on", "on", 2},
	{"off", "off", 2},
	{"1", "on", 1},
	{"0", "off", 1},
}

// checkBool accepts a boolean's words in any case, and their unambiguous beginnings.
func checkBool(v string) (string, error) {
	v = strings.ToLower(v)
	for _, b := range booleanWords {
		if len(v) >= b.least && strings.HasPrefix(b.word, v) {
			return b.means, nil
		}
	}
	return "", fmt.Errorf("parameter requires a Boolean value")
}

// checkInt accepts whole numbers in a range.
func checkInt(lo, hi int) func(string) (string, error) {
	return func(v string) (string, error) {
		n, err := strconv.Atoi(strings.TrimSpace(v))
		if err != nil || n < lo || n > hi {
			return "", fmt.Errorf("%s is outside the valid range (%d .. %d)", v, lo, hi)
		}
		return strconv.Itoa(n), nil
	}
}

// checkDuration accepts milliseconds or a number with a unit, and shows it as PostgreSQL does.
func checkDuration(v string) (string, error) {
	d, err := parseDuration(v)
	if err != nil {
		return "", err
	}
	for _, u := range []struct {
		d    time.Duration
		name string
	}{{24 * time.Hour, "d"}, {time.Hour, "h"}, {time.Minute, "min"}, {time.Second, "s"}} {
		if d != 0 && d%u.d == 0 {
			return strconv.FormatInt(int64(d/u.d), 10) + u.name, nil
		}
	}
	if d == 0 {
		return "0", nil
	}
	return strconv.FormatInt(d.Milliseconds(), 10) + "ms", nil
}

// checkZeroDuration accepts only "never": time-outs that Sluice does not enforce yet are not accepted and ignored.
func checkZeroDuration(v string) (string, error) {
	d, err := parseDuration(v)
	if err == nil && d != 0 {
		err = fmt.Errorf("this time-out is not enforced here, only 0 is accepted")
	}
	return "0", err
}

// parseDuration reads PostgreSQL's time units; a bare number is milliseconds (manual, 20.1.1).
func parseDuration(v string) (time.Duration, error) {
	v = strings.TrimSpace(v)
	digits := strings.TrimRight(v, "abcdefghijklmnopqrstuvwxyz ")
	n, err := strconv.ParseFloat(digits, 64)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("a duration is a number with an optional unit")
	}
	unit, ok := map[string]time.Duration{
		"": time.Millisecond, "us": time.Microsecond, "ms": time.Millisecond, "s": time.Second, "min": time.Minute,
		"h": time.Hour, "d": 24 * time.Hour,
	}[strings.TrimSpace(v[len(digits):])]
	if !ok {
		return 0, fmt.Errorf(`valid units for this parameter are "us", "ms", "s", "min", "h", and "d"`)
	}
	return time.Duration(n * float64(unit)), nil
}

// checkEncoding accepts UTF8 under its names; nothing is converted.
func checkEncoding(v string) (string, error) {
	switch strings.ToUpper(strings.ReplaceAll(v, "-", "")) {
	case "UTF8", "UNICODE":
		return "UTF8", nil
	}
	return "", fmt.Errorf("only UTF8 is spoken here")
}

// checkApplicationName keeps what a log can print, as PostgreSQL does.
func checkApplicationName(v string) (string, error) {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, v), nil
}

// checkDateStyle accepts PostgreSQL's styles and orders. Words left out are ISO and MDY, the defaults.
func checkDateStyle(v string) (string, error) {
	var c pgcodec.Settings
	if !c.SetDateStyle(v) {
		return "", errors.New("unrecognized date style")
	}
	return c.DateStyleText(), nil
}

// checkIntervalStyle accepts PostgreSQL's styles.
func checkIntervalStyle(v string) (string, error) {
	var c pgcodec.Settings
	if !c.SetIntervalStyle(v) {
		return "", errors.New("available values: postgres, postgres_verbose, sql_standard, iso_8601")
	}
	return c.IntervalStyleText(), nil
}

// checkTimeZone accepts a zone that this server's tables know.
func checkTimeZone(v string) (string, error) {
	if strings.EqualFold(v, "utc") || strings.EqualFold(v, "default") || strings.EqualFold(v, "local") {
		return "UTC", nil
	}
	if _, err := time.LoadLocation(v); err != nil || v == "" || v == "Local" {
		return "", fmt.Errorf("unknown time zone")
	}
	return v, nil
}

// checkIsolation accepts PostgreSQL's four levels. DuckLake's transactions are snapshots: every level gets at least
// what it asks for but SERIALIZABLE, which is refused rather than weakened.
func checkIsolation(v string) (string, error) {
	switch l := strings.ToLower(v); l {
	case "read uncommitted", "read committed", "repeatable read":
		return l, nil
	case "serializable":
		return "", fmt.Errorf("transactions are snapshots, that is at most repeatable read")
	}
	return "", fmt.Errorf("unknown isolation level")
}
