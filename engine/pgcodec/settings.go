package pgcodec

import (
	"strings"
	"time"
)

// DateStyle is the first word of PostgreSQL's DateStyle.
type DateStyle uint8

// The output styles of dates and timestamps.
const (
	DateISO DateStyle = iota
	DateSQL
	DatePostgres
	DateGerman
)

// DateOrder is the second word of PostgreSQL's DateStyle: how 01/02/03 is read, and printed by some styles.
type DateOrder uint8

// The orders of day, month and year.
const (
	OrderMDY DateOrder = iota
	OrderDMY
	OrderYMD
)

// IntervalStyle is PostgreSQL's IntervalStyle.
type IntervalStyle uint8

// The output styles of intervals.
const (
	IntervalPostgres IntervalStyle = iota
	IntervalPostgresVerbose
	IntervalSQLStandard
	IntervalISO8601
)

// ByteaOutput is PostgreSQL's bytea_output.
type ByteaOutput uint8

// The output styles of bytea.
const (
	ByteaHex ByteaOutput = iota
	ByteaEscape
)

// Settings are the session's settings that the text form of a value depends on. One goroutine uses a Settings at a
// time: it remembers the offset of the last time stamp it was asked about.
type Settings struct {
	Location         *time.Location // TimeZone; nil = UTC
	DateStyle        DateStyle
	DateOrder        DateOrder
	IntervalStyle    IntervalStyle
	ByteaOutput      ByteaOutput
	ExtraFloatDigits int // above 0: the shortest text that reads back the same

	zone zoneCache
}

// DefaultSettings are a new session's settings: UTC and PostgreSQL 12's defaults for the rest.
func DefaultSettings() *Settings {
	return &Settings{Location: time.UTC, ExtraFloatDigits: 1}
}

// styleNames are DateStyle's words as SHOW prints them.
var styleNames = [...]string{DateISO: "ISO", DateSQL: "SQL", DatePostgres: "Postgres", DateGerman: "German"}

// orderNames are the words for the order of day, month and year as SHOW prints them.
var orderNames = [...]string{OrderMDY: "MDY", OrderDMY: "DMY", OrderYMD: "YMD"}

// intervalNames are IntervalStyle's words.
var intervalNames = [...]string{
	IntervalPostgres: "postgres", IntervalPostgresVerbose: "postgres_verbose",
	IntervalSQLStandard: "sql_standard", IntervalISO8601: "iso_8601",
}

// dateStyleWords are the words that SET DateStyle accepts, in lower case, with what each of them sets.
var dateStyleWords = map[string]func(*Settings){
	"iso":      func(s *Settings) { s.DateStyle = DateISO },
	"sql":      func(s *Settings) { s.DateStyle = DateSQL },
	"postgres": func(s *Settings) { s.DateStyle = DatePostgres },
	"german":   func(s *Settings) { s.DateStyle = DateGerman },
	"mdy":      func(s *Settings) { s.DateOrder = OrderMDY },
	"us":       func(s *Settings) { s.DateOrder = OrderMDY },
	"noneuro":  func(s *Settings) { s.DateOrder = OrderMDY },
	"dmy":      func(s *Settings) { s.DateOrder = OrderDMY },
	"euro":     func(s *Settings) { s.DateOrder = OrderDMY },
	"european": func(s *Settings) { s.DateOrder = OrderDMY },
	"ymd":      func(s *Settings) { s.DateOrder = OrderYMD },
	"default":  func(s *Settings) { s.DateStyle, s.DateOrder = DateISO, OrderMDY },
}

// SetDateStyle reads a value of SET DateStyle, such as `ISO, DMY`; words left out keep their setting, except that
// German implies DMY as in PostgreSQL. False leaves the settings as they were: the caller answers 22023.
func (s *Settings) SetDateStyle(value string) bool {
	trial, ordered, german := Settings{DateStyle: s.DateStyle, DateOrder: s.DateOrder}, false, false
	for word := range strings.SplitSeq(value, ",") {
		word = strings.ToLower(strings.TrimSpace(word))
		set, known := dateStyleWords[word]
		if !known {
			return false
		}
		before := trial.DateStyle
		set(&trial)
		german = german || word == "german"
		ordered = ordered || before == trial.DateStyle && word != "iso" && word != "sql" && word != "postgres" && word != "german"
	}
	if german && !ordered {
		trial.DateOrder = OrderDMY
	}
	s.DateStyle, s.DateOrder = trial.DateStyle, trial.DateOrder
	return true
}

// DateStyleText is what SHOW DateStyle prints.
func (s *Settings) DateStyleText() string {
	return styleNames[s.DateStyle] + ", " + orderNames[s.DateOrder]
}

// SetIntervalStyle reads a value of SET IntervalStyle; false = no such style.
func (s *Settings) SetIntervalStyle(value string) bool {
	for style, name := range intervalNames {
		if strings.EqualFold(name, value) {
			s.IntervalStyle = IntervalStyle(style)
			return true
		}
	}
	return false
}

// IntervalStyleText is what SHOW IntervalStyle prints.
func (s *Settings) IntervalStyleText() string { return intervalNames[s.IntervalStyle] }

// SetByteaOutput reads a value of SET bytea_output; false = no such style.
func (s *Settings) SetByteaOutput(value string) bool {
	switch strings.ToLower(value) {
	case "hex":
		s.ByteaOutput = ByteaHex
	case "escape":
		s.ByteaOutput = ByteaEscape
	default:
		return false
	}
	return true
}

// ByteaOutputText is what SHOW bytea_output prints.
func (s *Settings) ByteaOutputText() string {
	if s.ByteaOutput == ByteaEscape {
		return "escape"
	}
	return "hex"
}

// zoneCache is the last stretch of time that was looked up in a location, with its offset. Rows of a result mostly lie
// in the same stretch.
type zoneCache struct {
	location   *time.Location
	start, end int64 // seconds since 1970; end is exclusive
	offset     int   // seconds east of UTC
}

// zoneOffset gives the session's offset in seconds east of UTC at an instant, in seconds since 1970.
func (s *Settings) zoneOffset(unix int64) int {
	if s.Location == nil || s.Location == time.UTC {
		return 0
	}
	z := &s.zone
	if z.location == s.Location && z.start <= unix && unix < z.end {
		return z.offset
	}
	t := time.Unix(unix, 0).In(s.Location)
	start, end := t.ZoneBounds()
	z.location, z.start, z.end = s.Location, -1<<63, 1<<63-1
	if !start.IsZero() {
		z.start = start.Unix()
	}
	if !end.IsZero() {
		z.end = end.Unix()
	}
	_, z.offset = t.Zone()
	return z.offset
}
