package pgcodec

import (
	"math"
	"strings"
	"sync"
	"time"
)

// DuckDB's range of time stamps, in microseconds since 1970 (290309-12-22 BC to 294247-01-10), and of dates, in days.
const (
	timestampLeast int64 = -9_223_372_022_400_000_000
	timestampMost        = timestampInfinity - 1
	dateLeast      int64 = -2_147_483_646
	dateMost       int64 = math.MaxInt32 - 1
)

// yearDigitsMax keeps years within what civil.days computes without overflow.
const yearDigitsMax = 7

// stamp is a date, a time, or both, as they were read.
type stamp struct {
	date     civil
	hasDate  bool
	clock    int64 // microseconds since midnight
	hasTime  bool
	offset   int // seconds east of UTC
	location *time.Location
	hasZone  bool // offset or location holds
	infinite int  // -1, 1
	absolute bool // epoch, now, and the names of days: instant holds microseconds since 1970 in UTC
	instant  int64
}

// parseStamp reads a date, a time, or both. The usual form, 2020-01-02[ 03:04:05[.6][+07]], has a path of its own.
func parseStamp(src []byte, s *Settings) (stamp, failure) {
	src = trim(src)
	if st, ok := parseISO(src); ok {
		return st, st.date.check()
	}
	p := stampParser{settings: s}
	return p.parse(src)
}

// parseISO reads the usual form; false sends everything else to the long way.
func parseISO(src []byte) (st stamp, ok bool) {
	if len(src) < 10 || src[4] != '-' || src[7] != '-' {
		return st, false
	}
	year, ok1 := number2(src, 0)
	decade, ok2 := number2(src, 2)
	month, ok3 := number2(src, 5)
	day, ok4 := number2(src, 8)
	st.date, st.hasDate = civil{int64(year*100 + decade), month, day}, true
	if !ok1 || !ok2 || !ok3 || !ok4 || st.date.year == 0 {
		return st, false
	}
	if len(src) == 10 {
		return st, true
	}
	if src[10] != ' ' && src[10] != 'T' {
		return st, false
	}
	clock, rest, f := parseClock(src[11:])
	if f != parsed {
		return st, false
	}
	st.clock, st.hasTime = clock, true
	switch {
	case len(rest) == 0:
		return st, true
	case len(rest) == 1 && (rest[0] == 'Z' || rest[0] == 'z'):
		st.hasZone = true
		return st, true
	case rest[0] == '+' || rest[0] == '-':
		st.offset, f = parseOffset(rest)
		st.hasZone = true
		return st, f == parsed
	}
	return st, false
}

// number2 reads two digits at a place.
func number2(src []byte, i int) (int, bool) {
	a, b := src[i]-'0', src[i+1]-'0'
	return int(a)*10 + int(b), a <= 9 && b <= 9
}

// daysInMonth is the count of days of the months of a common year.
var daysInMonth = [13]int{0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31}

// check says whether the date exists.
func (c civil) check() failure {
	if c.month < 1 || c.month > 12 || c.day < 1 || c.day > 31 {
		return monthDayOverflow
	}
	last := daysInMonth[c.month]
	if c.month == 2 && c.year%4 == 0 && (c.year%100 != 0 || c.year%400 == 0) {
		last = 29
	}
	if c.day > last {
		return fieldOverflow
	}
	return parsed
}

// parseClock reads HH:MM[:SS[.fraction]] at the start and gives what follows. Microseconds are rounded.
func parseClock(src []byte) (micros int64, rest []byte, f failure) {
	var parts [3]int64
	count := 0
	for ; count < 3; count++ {
		run, after := digits(src)
		if len(run) == 0 || len(run) > 9 {
			return 0, src, badDatetime
		}
		for _, b := range run {
			parts[count] = parts[count]*10 + int64(b-'0')
		}
		src = after
		if count < 2 {
			if len(src) == 0 || src[0] != ':' {
				count++
				break
			}
			src = src[1:]
		}
	}
	if count < 2 {
		return 0, src, badDatetime
	}
	micros = parts[0]*microsPerHour + parts[1]*microsPerMinute + parts[2]*microsPerSecond
	if parts[1] > 59 || parts[2] > 60 || parts[0] > 24 {
		return 0, src, fieldOverflow
	}
	if count == 3 && len(src) > 0 && src[0] == '.' {
		run, after := digits(src[1:])
		micros += fraction(run, microsPerSecond)
		src = after
	}
	if micros > microsPerDay {
		return 0, src, fieldOverflow
	}
	return micros, src, parsed
}

// fraction gives 0.run times a unit, rounded half up.
func fraction(run []byte, unit int64) int64 {
	var n, scale int64 = 0, 1
	for i, b := range run {
		if i == 9 {
			break
		}
		n, scale = n*10+int64(b-'0'), scale*10
	}
	if unit <= microsPerSecond {
		return (n*unit*2 + scale) / (scale * 2)
	}
	return int64(math.RoundToEven(float64(n) / float64(scale) * float64(unit)))
}

// parseOffset reads +HH, +HHMM, +HH:MM or +HH:MM:SS as seconds east of UTC.
func parseOffset(src []byte) (int, failure) {
	sign := 1
	if src[0] == '-' {
		sign = -1
	}
	var parts [3]int
	run, rest := digits(src[1:])
	switch {
	case len(run) == 0:
		return 0, badDatetime
	case len(run) <= 2:
		parts[0] = small(run)
	case len(run) <= 4:
		parts[0], parts[1] = small(run[:len(run)-2]), small(run[len(run)-2:])
	case len(run) <= 6:
		parts[0], parts[1], parts[2] = small(run[:len(run)-4]), small(run[len(run)-4:len(run)-2]), small(run[len(run)-2:])
	default:
		return 0, zoneOverflow
	}
	for i := 1; i < 3 && len(rest) > 0; i++ {
		if rest[0] != ':' {
			return 0, badDatetime
		}
		run, rest = digits(rest[1:])
		if len(run) == 0 || len(run) > 2 {
			return 0, badDatetime
		}
		parts[i] = small(run)
	}
	if len(rest) > 0 {
		return 0, badDatetime
	}
	if parts[0] > 15 || parts[1] > 59 || parts[2] > 59 {
		return 0, zoneOverflow
	}
	return sign * (parts[0]*3600 + parts[1]*60 + parts[2]), parsed
}

// small reads a few digits.
func small(run []byte) int {
	n := 0
	for _, b := range run {
		n = n*10 + int(b-'0')
	}
	return n
}

// stampParser reads the forms that people write: words in any order.
type stampParser struct {
	stamp
	settings *Settings
	month    int // named by a word
	numbers  [3][]byte
	count    int // of numbers
	bc       bool
	half     byte // 'a' AM, 'p' PM
	isoClock bool // the date before ended in T: 040506 is a time
}

// parse reads the whole text.
func (p *stampParser) parse(src []byte) (stamp, failure) {
	for len(src) > 0 {
		if isSpace(src[0]) || src[0] == ',' {
			src = src[1:]
			continue
		}
		n := 1
		for n < len(src) && !isSpace(src[n]) && src[n] != ',' {
			n++
		}
		if f := p.word(src[:n]); f != parsed {
			return p.stamp, f
		}
		src = src[n:]
	}
	return p.stamp, p.finish()
}

// word takes one word.
func (p *stampParser) word(w []byte) failure {
	switch {
	case isDigit(w[0]):
		return p.numeric(w)
	case (w[0] == '+' || w[0] == '-') && len(w) > 1 && isDigit(w[1]):
		return p.zoneOffset(w)
	}
	if n := len(w) - len(afterLetters(w)); n >= 3 && n+1 < len(w) && monthOf(w[:n]) != 0 && isDigit(w[n+1]) {
		return p.datePart(w) // Jan-08-1999
	}
	if len(w) > 1 && w[0]|0x20 == 't' && isDigit(w[1]) {
		p.isoClock = true
		return p.word(w[1:])
	}
	return p.name(w)
}

// afterLetters drops the letters at the start.
func afterLetters(w []byte) []byte {
	_, rest := letters(w)
	return rest
}

// zoneOffset takes +HH:MM.
func (p *stampParser) zoneOffset(w []byte) failure {
	offset, f := parseOffset(w)
	p.offset, p.hasZone = offset, true
	return f
}

// numeric takes a word that begins with a digit: a time, a date, a date and a time, or a number.
func (p *stampParser) numeric(w []byte) failure {
	if i := timeMark(w); i > 0 { // 2020-01-02T03:04:05
		if f := p.datePart(w[:i]); f != parsed {
			return f
		}
		p.isoClock = true
		return p.word(w[i+1:])
	}
	run, rest := digits(w)
	switch {
	case len(rest) > 0 && rest[0] == ':':
		return p.clockPart(w)
	case p.isoClock && !p.hasTime && (len(run) == 6 || len(run) == 4):
		return p.compactClock(run, rest)
	}
	return p.datePart(w)
}

// timeMark finds the T between a date and a time.
func timeMark(w []byte) int {
	for i := 1; i+1 < len(w); i++ {
		if (w[i] == 'T' || w[i] == 't') && isDigit(w[i-1]) && isDigit(w[i+1]) {
			return i
		}
	}
	return -1
}

// clockPart takes HH:MM:SS and what is glued to it: an offset, Z, AM, a zone's name.
func (p *stampParser) clockPart(w []byte) failure {
	if p.hasTime {
		return badDatetime
	}
	clock, rest, f := parseClock(w)
	if f != parsed {
		return f
	}
	p.clock, p.hasTime = clock, true
	if len(rest) == 0 {
		return parsed
	}
	if isDigit(rest[0]) || rest[0] == '.' || rest[0] == ':' {
		return badDatetime
	}
	return p.word(rest)
}

// compactClock takes HHMMSS after a T.
func (p *stampParser) compactClock(run, rest []byte) failure {
	clock := make([]byte, 0, 16)
	for i := 0; i < len(run); i += 2 {
		if i > 0 {
			clock = append(clock, ':')
		}
		clock = append(clock, run[i:i+2]...)
	}
	return p.clockPart(append(clock, rest...))
}

// datePart takes three numbers with separators, eight or six digits, or a lone number.
func (p *stampParser) datePart(w []byte) failure {
	run, rest := digits(w)
	if len(rest) == 0 {
		return p.loneNumber(run)
	}
	if len(run) == 0 {
		rest = afterLetters(w)
	}
	separator := rest[0]
	if separator != '-' && separator != '/' && separator != '.' || p.hasDate {
		return badDatetime
	}
	var parts [3][]byte
	count := 0
	for ; count < 3 && len(w) > 0; count++ {
		end := 0
		for end < len(w) && w[end] != separator {
			end++
		}
		parts[count], w = w[:end], w[min(end+1, len(w)):]
	}
	if count < 3 || len(w) > 0 && !(w[0] == '+' || w[0] == '-') {
		return p.dayOfYear(parts[:count], w)
	}
	for _, part := range parts {
		if len(part) == 0 {
			return badDatetime
		}
		if !isDigit(part[0]) {
			if p.month = monthOf(part); p.month == 0 {
				return badDatetime
			}
			continue
		}
		if f := p.number(part); f != parsed {
			return f
		}
	}
	return parsed
}

// dayOfYear takes 2020.123 and 2020-123.
func (p *stampParser) dayOfYear(parts [][]byte, rest []byte) failure {
	if len(parts) != 2 || len(rest) > 0 || len(parts[0]) != 4 || len(parts[1]) != 3 {
		return badDatetime
	}
	for _, part := range parts {
		if run, _ := digits(part); len(run) != len(part) {
			return badDatetime
		}
	}
	day := small(parts[1])
	if day < 1 || day > 366 {
		return fieldOverflow
	}
	p.date = civilOf(civil{int64(small(parts[0])), 1, 1}.days() + int64(day) - 1)
	p.hasDate = true
	return parsed
}

// loneNumber takes a number whose meaning its neighbours decide, or a date of six or eight digits.
func (p *stampParser) loneNumber(run []byte) failure {
	compact := p.count == 0 && p.month == 0 && !p.hasDate
	switch {
	case compact && len(run) == 8:
		p.date, p.hasDate = civil{int64(small(run[:4])), small(run[4:6]), small(run[6:])}, true
		return parsed
	case compact && len(run) == 6:
		p.date, p.hasDate = civil{twoDigitYear(run[:2]), small(run[2:4]), small(run[4:])}, true
		return parsed
	}
	return p.number(run)
}

// number takes one part of a date.
func (p *stampParser) number(run []byte) failure {
	if p.count == 3 || len(run) > yearDigitsMax || p.hasDate {
		return badDatetime
	}
	for _, b := range run {
		if !isDigit(b) {
			return badDatetime
		}
	}
	p.numbers[p.count] = run
	p.count++
	return parsed
}

// twoDigitYear puts years without a century into 1970 to 2069.
func twoDigitYear(run []byte) int64 {
	year := int64(small(run))
	switch {
	case len(run) > 2:
		return year
	case year < 70:
		return year + 2000
	}
	return year + 1900
}

// assemble decides which of the numbers is the year, the month and the day.
func (p *stampParser) assemble() failure {
	year, month, day := -1, -1, -1
	switch {
	case p.month != 0 && p.count == 2:
		year, day = 1, 0
		if len(p.numbers[0]) > 2 || p.settings.DateOrder == OrderYMD && len(p.numbers[1]) <= 2 {
			year, day = 0, 1
		}
	case p.month != 0 || p.count != 3:
		return badDatetime
	case len(p.numbers[0]) > 2 || p.settings.DateOrder == OrderYMD:
		year, month, day = 0, 1, 2
	case p.settings.DateOrder == OrderDMY:
		day, month, year = 0, 1, 2
	default:
		month, day, year = 0, 1, 2
	}
	p.date = civil{year: p.fullYear(p.numbers[year]), month: p.month, day: small(p.numbers[day])}
	if month >= 0 {
		p.date.month = small(p.numbers[month])
	}
	p.hasDate = true
	return parsed
}

// fullYear adds the century that two digits leave out, except before year 1.
func (p *stampParser) fullYear(run []byte) int64 {
	if p.bc {
		return int64(small(run))
	}
	return twoDigitYear(run)
}

// finish puts the parts together and checks them.
func (p *stampParser) finish() failure {
	if p.infinite != 0 || p.absolute {
		if p.count > 0 || p.month != 0 || p.hasDate {
			return badDatetime
		}
		return parsed
	}
	if p.count > 0 || p.month != 0 {
		if f := p.assemble(); f != parsed {
			return f
		}
	}
	if p.hasDate {
		if p.date.year == 0 {
			return fieldOverflow
		}
		if p.bc {
			p.date.year = 1 - p.date.year
		}
		if f := p.date.check(); f != parsed {
			return f
		}
	}
	if p.half != 0 {
		hour := p.clock / microsPerHour
		if !p.hasTime || hour > 12 {
			return fieldOverflow
		}
		if p.half == 'p' && hour != 12 {
			p.clock += 12 * microsPerHour
		} else if p.half == 'a' && hour == 12 {
			p.clock -= 12 * microsPerHour
		}
	}
	if !p.hasDate && !p.hasTime {
		return badDatetime
	}
	return parsed
}

// monthOf gives the number of a month by its name or its first letters, at least three; 0 = none.
func monthOf(w []byte) int {
	if len(w) < 3 {
		return 0
	}
	for m := time.January; m <= time.December; m++ {
		name := m.String()
		if len(w) <= len(name) && strings.EqualFold(text(w), name[:len(w)]) {
			return int(m)
		}
	}
	return 0
}

// isWeekday says whether the word is a day's name or its first letters.
func isWeekday(w []byte) bool {
	for d := time.Sunday; d <= time.Saturday; d++ {
		name := d.String()
		if len(w) >= 3 && len(w) <= len(name) && strings.EqualFold(text(w), name[:len(w)]) {
			return true
		}
	}
	return false
}

// zoneNames are the abbreviations that PostgreSQL's Default set knows, the common ones of them, in seconds east.
var zoneNames = map[string]int{
	"z": 0, "zulu": 0, "utc": 0, "ut": 0, "gmt": 0, "uct": 0, "wet": 0, "bst": 3600, "west": 3600, "cet": 3600, "met": 3600,
	"cest": 7200, "mest": 7200, "eet": 7200, "sast": 7200, "eest": 10800, "msk": 10800, "msd": 14400, "ist": 7200, "idt": 10800,
	"pkt": 18000, "hkt": 28800, "sgt": 28800, "awst": 28800, "jst": 32400, "kst": 32400, "acst": 34200, "aest": 36000,
	"acdt": 37800, "aedt": 39600, "nzst": 43200, "nzdt": 46800, "nst": -12600, "ndt": -9000, "ast": -14400, "adt": -10800,
	"est": -18000, "edt": -14400, "cst": -21600, "cdt": -18000, "mst": -25200, "mdt": -21600, "pst": -28800, "pdt": -25200,
	"akst": -32400, "akdt": -28800, "hst": -36000, "brt": -10800, "art": -10800,
}

// locations remembers the zones that values named, as time.LoadLocation reads a file each time. Only names that exist
// come in, so its size is that of the zone database.
var locations sync.Map

// LoadLocation is time.LoadLocation with a memory. It refuses "Local" and "", which are no zones of PostgreSQL.
func LoadLocation(name string) (*time.Location, error) {
	if l, ok := locations.Load(name); ok {
		return l.(*time.Location), nil
	}
	if name == "" || strings.EqualFold(name, "local") {
		return nil, &time.ParseError{Value: name, Message: ": unknown time zone"}
	}
	l, err := time.LoadLocation(name)
	if err == nil {
		locations.Store(strings.Clone(name), l)
	}
	return l, err
}

// specialNames are the words that stand for an instant.
var specialNames = map[string]func(p *stampParser){
	"infinity":  func(p *stampParser) { p.infinite = 1 },
	"+infinity": func(p *stampParser) { p.infinite = 1 },
	"-infinity": func(p *stampParser) { p.infinite = -1 },
	"epoch":     func(p *stampParser) { p.absolute = true },
	"now":       func(p *stampParser) { p.absolute, p.instant = true, time.Now().UnixMicro() },
	"today":     func(p *stampParser) { p.today(0) },
	"tomorrow":  func(p *stampParser) { p.today(1) },
	"yesterday": func(p *stampParser) { p.today(-1) },
	"allballs":  func(p *stampParser) { p.hasTime, p.hasZone = true, true },
}

// today sets the date of the session's time zone, so many days later.
func (p *stampParser) today(later int) {
	location := p.settings.Location
	if location == nil {
		location = time.UTC
	}
	now := time.Now().In(location).AddDate(0, 0, later)
	p.date, p.hasDate = civil{int64(now.Year()), int(now.Month()), now.Day()}, true
}

// name takes a word of letters.
func (p *stampParser) name(w []byte) failure {
	var room [32]byte
	lower := append(room[:0], w...)
	for i, b := range lower {
		if b >= 'A' && b <= 'Z' {
			lower[i] = b + 'a' - 'A'
		}
	}
	if special := specialNames[string(lower)]; special != nil {
		special(p)
		return parsed
	}
	switch text(lower) {
	case "bc", "b.c.":
		p.bc = true
		return parsed
	case "ad", "a.d.", "at", "on":
		return parsed
	case "am", "pm":
		p.half = lower[0]
		return parsed
	case "t":
		p.isoClock = true
		return parsed
	}
	if m := monthOf(w); m != 0 && p.month == 0 {
		p.month = m
		return parsed
	}
	if isWeekday(w) {
		return parsed
	}
	return p.zoneName(w, lower)
}

// zoneName takes a time zone's abbreviation or name.
func (p *stampParser) zoneName(w, lower []byte) failure {
	if p.hasZone {
		return badDatetime
	}
	if offset, known := zoneNames[string(lower)]; known {
		p.offset, p.hasZone = offset, true
		return parsed
	}
	location, err := LoadLocation(string(w))
	if err != nil {
		if len(w) > 2 && strings.ContainsRune(text(w), '/') {
			return unknownZone
		}
		return badDatetime
	}
	p.location, p.hasZone = location, true
	return parsed
}

// parseDate reads a DATE: days since 1970.
func parseDate(src []byte, s *Settings) (int32, failure) {
	st, f := parseStamp(src, s)
	switch {
	case f != parsed:
		return 0, f
	case st.infinite > 0:
		return dateInfinity, parsed
	case st.infinite < 0:
		return dateNegInfinity, parsed
	case st.absolute:
		local := st.instant/microsPerSecond + int64(s.zoneOffset(st.instant/microsPerSecond))
		if st.instant == 0 {
			local = 0
		}
		return int32(floorDiv(local, secondsPerDay)), parsed
	case !st.hasDate:
		return 0, badDatetime
	}
	days := st.date.days()
	if days < dateLeast || days > dateMost {
		return 0, datetimeRange
	}
	return int32(days), parsed
}

// parseTime reads a TIME: microseconds since midnight. A date or a zone beside it is read and dropped.
func parseTime(src []byte, s *Settings) (int64, failure) {
	if clock, rest, f := parseClock(src); f == parsed && len(rest) == 0 {
		return clock, parsed
	}
	st, f := parseStamp(src, s)
	switch {
	case f != parsed:
		return 0, f
	case st.absolute:
		seconds := floorDiv(st.instant, microsPerSecond)
		local := st.instant + int64(s.zoneOffset(seconds))*microsPerSecond
		return local - floorDiv(local, microsPerDay)*microsPerDay, parsed
	case !st.hasTime:
		return 0, badDatetime
	}
	return st.clock, parsed
}

// parseTimeTZ reads a TIMETZ as DuckDB packs it. Without a zone the session's present offset holds.
func parseTimeTZ(src []byte, s *Settings) (uint64, failure) {
	st, f := parseStamp(src, s)
	switch {
	case f != parsed:
		return 0, f
	case !st.hasTime:
		return 0, badDatetime
	}
	east := st.offset
	if at := time.Now(); st.location != nil {
		if !st.hasDate {
			return 0, badDatetime // the offset of a named zone depends on the date
		}
		east = offsetAt(st.location, st.date.days()*secondsPerDay+st.clock/microsPerSecond)
	} else if !st.hasZone {
		east = s.zoneOffset(at.Unix())
	}
	return joinTimeTZ(st.clock, east), parsed
}

// parseTimestamp reads a TIMESTAMP or TIMESTAMPTZ: microseconds since 1970. Without a time zone type a zone in the text
// is dropped, as PostgreSQL does; with it and without a zone in the text the session's holds.
func parseTimestamp(src []byte, withZone bool, s *Settings) (int64, failure) {
	st, f := parseStamp(src, s)
	switch {
	case f != parsed:
		return 0, f
	case st.infinite > 0:
		return timestampInfinity, parsed
	case st.infinite < 0:
		return timestampNegInf, parsed
	case st.absolute:
		if !withZone && st.instant != 0 {
			return st.instant + int64(s.zoneOffset(st.instant/microsPerSecond))*microsPerSecond, parsed
		}
		return st.instant, parsed
	case !st.hasDate:
		return 0, badDatetime
	}
	days := st.date.days()
	if days < timestampLeast/microsPerDay-1 || days > timestampMost/microsPerDay {
		return 0, datetimeRange
	}
	local := days*secondsPerDay + st.clock/microsPerSecond
	if withZone {
		local -= int64(st.east(local, s))
	}
	return joinMicros(local, st.clock%microsPerSecond)
}

// joinMicros makes microseconds of seconds and a rest, within DuckDB's range.
func joinMicros(seconds, micros int64) (int64, failure) {
	if seconds < timestampLeast/microsPerSecond || seconds > timestampMost/microsPerSecond {
		return 0, datetimeRange
	}
	whole := seconds * microsPerSecond
	if whole > timestampMost-micros {
		return 0, datetimeRange
	}
	return whole + micros, parsed
}

// east gives the offset that holds for a local time, in seconds since 1970.
func (st *stamp) east(local int64, s *Settings) int {
	switch {
	case st.location != nil:
		return offsetAt(st.location, local)
	case st.hasZone:
		return st.offset
	case s.Location == nil || s.Location == time.UTC:
		return 0
	}
	return offsetAt(s.Location, local)
}

// offsetAt gives a zone's offset at a local time. Times that a change of the clocks leaves out are read with the offset
// before it, times that occur twice with the one after, as PostgreSQL does.
func offsetAt(location *time.Location, local int64) int {
	before := time.Unix(local-secondsPerDay, 0).In(location)
	_, early := before.Zone()
	_, change := before.ZoneBounds()
	if change.IsZero() {
		return early
	}
	_, late := change.In(location).Zone()
	boundary := change.Unix()
	switch withEarly, withLate := local-int64(early), local-int64(late); {
	case withEarly < boundary && withLate < boundary:
		return early
	case withEarly >= boundary && withLate >= boundary:
		return late
	case withEarly > withLate: // the clocks go forward
		return early
	}
	return late
}
