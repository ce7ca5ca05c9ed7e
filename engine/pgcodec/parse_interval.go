package pgcodec

import (
	"math"
	"strings"
)

// intervalUnit is what a unit's word adds to an interval.
type intervalUnit struct {
	months, days, micros int64
	field                uint16 // a bit; each field may come once
}

// The fields of an interval.
const (
	fieldMicrosecond uint16 = 1 << iota
	fieldMillisecond
	fieldSecond
	fieldMinute
	fieldHour
	fieldDay
	fieldWeek
	fieldMonth
	fieldYear
	fieldDecade
	fieldCentury
	fieldMillennium
)

// intervalUnits are PostgreSQL's words for units, in lower case, without the plurals that strip off.
var intervalUnits = map[string]intervalUnit{
	"microsecond": {micros: 1, field: fieldMicrosecond}, "us": {micros: 1, field: fieldMicrosecond}, "usec": {micros: 1, field: fieldMicrosecond}, "usecond": {micros: 1, field: fieldMicrosecond},
	"millisecond": {micros: 1000, field: fieldMillisecond}, "ms": {micros: 1000, field: fieldMillisecond}, "msec": {micros: 1000, field: fieldMillisecond}, "msecond": {micros: 1000, field: fieldMillisecond},
	"second": {micros: microsPerSecond, field: fieldSecond}, "s": {micros: microsPerSecond, field: fieldSecond}, "sec": {micros: microsPerSecond, field: fieldSecond},
	"minute": {micros: microsPerMinute, field: fieldMinute}, "m": {micros: microsPerMinute, field: fieldMinute}, "min": {micros: microsPerMinute, field: fieldMinute},
	"hour": {micros: microsPerHour, field: fieldHour}, "h": {micros: microsPerHour, field: fieldHour}, "hr": {micros: microsPerHour, field: fieldHour},
	"day": {days: 1, field: fieldDay}, "d": {days: 1, field: fieldDay},
	"week": {days: 7, field: fieldWeek}, "w": {days: 7, field: fieldWeek},
	"month": {months: 1, field: fieldMonth}, "mon": {months: 1, field: fieldMonth},
	"year": {months: 12, field: fieldYear}, "y": {months: 12, field: fieldYear}, "yr": {months: 12, field: fieldYear},
	"decade": {months: 120, field: fieldDecade}, "dec": {months: 120, field: fieldDecade},
	"century": {months: 1200, field: fieldCentury}, "centurie": {months: 1200, field: fieldCentury}, "cent": {months: 1200, field: fieldCentury}, "c": {months: 1200, field: fieldCentury},
	"millennium": {months: 12_000, field: fieldMillennium}, "millennia": {months: 12_000, field: fieldMillennium}, "mil": {months: 12_000, field: fieldMillennium},
}

// intervalParser gathers the parts of an interval.
type intervalParser struct {
	months, days float64 // whole numbers; float64 so that overflow is seen at the end
	micros       int64
	over         bool // micros overflowed
	parts        int
	ago          bool
	allNegative  bool
	fields       uint16 // seen
	again        bool   // a field came twice
}

// parseInterval reads `1 year 2 mons 3 days 04:05:06`, `@ 1 hour ago`, `1-2 3 4:05:06` and `P1Y2M3DT4H5M6S`.
// In the SQL standard's style a minus at the start, with no sign after it, holds for all parts.
func parseInterval(src []byte, s *Settings) (interval, failure) {
	src = trim(src)
	var p intervalParser
	var f failure
	if len(src) > 1 && src[0] == 'P' {
		f = p.iso(src[1:])
	} else {
		p.allNegative = s.IntervalStyle == IntervalSQLStandard && len(src) > 0 && src[0] == '-' && !signedLater(src)
		f = p.words(src)
	}
	if f != parsed {
		return interval{}, f
	}
	return p.finish()
}

// signedLater says whether a part after the first has a sign.
func signedLater(src []byte) bool {
	for i := 1; i < len(src); i++ {
		if (src[i] == '-' || src[i] == '+') && isSpace(src[i-1]) {
			return true
		}
	}
	return false
}

// finish checks the ranges.
func (p *intervalParser) finish() (interval, failure) {
	if p.parts == 0 || p.again {
		return interval{}, badDatetime
	}
	if p.ago {
		p.months, p.days, p.micros = -p.months, -p.days, -p.micros
	}
	if math.Abs(p.months) > math.MaxInt32 {
		return interval{}, intervalRange
	}
	if math.Abs(p.days) > math.MaxInt32 || p.over {
		return interval{}, intervalOverflow
	}
	return interval{int32(p.months), int32(p.days), p.micros}, parsed
}

// words reads the forms with spaces between their parts.
func (p *intervalParser) words(src []byte) failure {
	for {
		src = trim(src)
		if len(src) == 0 {
			return parsed
		}
		switch {
		case src[0] == '@':
			src = src[1:]
			continue
		case isLetter(src[0]):
			word, rest := letters(src)
			if !strings.EqualFold(text(word), "ago") {
				return badDatetime
			}
			p.ago, src = true, rest
			continue
		}
		rest, f := p.number(src)
		if f != parsed {
			return f
		}
		src = rest
	}
}

// number reads a number and its unit, a clock time, or years and months.
func (p *intervalParser) number(src []byte) (rest []byte, f failure) {
	negative := src[0] == '-' || p.allNegative
	start := src
	src = skipSign(src)
	whole, rest := digits(src)
	if len(whole) > 0 && len(rest) > 0 && rest[0] == ':' {
		return p.clock(src, negative)
	}
	if len(whole) > 0 && len(rest) > 1 && rest[0] == '-' && isDigit(rest[1]) {
		return p.yearMonth(whole, rest[1:], negative)
	}
	value, rest, ok := scanNumber(start)
	if !ok {
		return nil, badDatetime
	}
	if p.allNegative && start[0] != '-' {
		value.whole, value.fraction = -value.whole, -value.fraction
	}
	rest = trimLeft(rest)
	word, after := letters(rest)
	if len(word) == 0 || strings.EqualFold(text(word), "ago") {
		// A number without a unit is days before a clock time, else seconds.
		unit := intervalUnits["second"]
		if next, _ := digits(skipSign(rest)); len(next) > 0 && strings.IndexByte(text(rest), ':') >= 0 {
			unit = intervalUnits["day"]
		}
		p.add(value, unit)
		return rest, parsed
	}
	unit, known := unitOf(word)
	if !known {
		return nil, badDatetime
	}
	p.add(value, unit)
	return after, parsed
}

// skipSign drops one sign.
func skipSign(src []byte) []byte {
	if len(src) > 0 && (src[0] == '-' || src[0] == '+') {
		return src[1:]
	}
	return src
}

// trimLeft takes white space off the start.
func trimLeft(src []byte) []byte {
	for len(src) > 0 && isSpace(src[0]) {
		src = src[1:]
	}
	return src
}

// isLetter says a to z in either case.
func isLetter(b byte) bool { return b|0x20-'a' < 26 }

// letters splits off the letters at the start.
func letters(src []byte) (word, rest []byte) {
	n := 0
	for n < len(src) && isLetter(src[n]) {
		n++
	}
	return src[:n], src[n:]
}

// unitOf finds a unit by its word, plural or not.
func unitOf(word []byte) (intervalUnit, bool) {
	name := strings.ToLower(string(word))
	if u, known := intervalUnits[name]; known {
		return u, true
	}
	u, known := intervalUnits[strings.TrimSuffix(name, "s")]
	return u, known && len(name) > 2
}

// decimalNumber is a number with its fraction apart, so that whole numbers stay exact.
type decimalNumber struct {
	whole    float64
	fraction float64 // below 1, with the number's sign
}

// scanNumber reads a signed decimal number.
func scanNumber(src []byte) (n decimalNumber, rest []byte, ok bool) {
	negative := src[0] == '-'
	src = skipSign(src)
	whole, rest := digits(src)
	for _, b := range whole {
		n.whole = n.whole*10 + float64(b-'0')
	}
	var part []byte
	if len(rest) > 0 && rest[0] == '.' {
		part, rest = digits(rest[1:])
		scale := 1.0
		for _, b := range part {
			scale *= 10
			n.fraction = n.fraction*10 + float64(b-'0')
		}
		n.fraction /= scale
	}
	if negative {
		n.whole, n.fraction = -n.whole, -n.fraction
	}
	return n, rest, len(whole)+len(part) > 0
}

// add adds a number of units. A fraction of a year is months, of a month 30 days each, of a day time.
func (p *intervalParser) add(n decimalNumber, u intervalUnit) {
	p.seen(u.field)
	switch {
	case u.months == 1:
		p.months += n.whole
		p.addDays(n.fraction * 30)
	case u.months > 0:
		p.months += n.whole*float64(u.months) + math.RoundToEven(n.fraction*float64(u.months))
	case u.days > 0:
		p.days += n.whole * float64(u.days)
		p.addDays(n.fraction * float64(u.days))
	default:
		if math.Abs(n.whole) > float64(math.MaxInt64/u.micros) {
			p.over = true
			return
		}
		p.addMicros(int64(n.whole) * u.micros)
		p.addMicros(int64(math.RoundToEven(n.fraction * float64(u.micros))))
	}
}

// seen notes a part with its fields.
func (p *intervalParser) seen(fields uint16) {
	p.again = p.again || p.fields&fields != 0
	p.fields |= fields
	p.parts++
}

// addDays adds days and the fraction of a day as time.
func (p *intervalParser) addDays(days float64) {
	whole := math.Trunc(days)
	p.days += whole
	p.addMicros(int64(math.RoundToEven((days - whole) * float64(microsPerDay))))
}

// addMicros adds time and notes an overflow.
func (p *intervalParser) addMicros(n int64) {
	sum := p.micros + n
	p.over = p.over || n > 0 && sum < p.micros || n < 0 && sum > p.micros
	p.micros = sum
}

// clockHoursMax keeps hours within an int64 of microseconds.
const clockHoursMax = 2_562_047_788

// clock reads [hours]:MM[:SS[.fraction]].
func (p *intervalParser) clock(src []byte, negative bool) (rest []byte, f failure) {
	var parts [3]int64
	count := 0
	for ; count < 3; count++ {
		run, after := digits(src)
		if len(run) == 0 {
			return nil, badDatetime
		}
		if len(run) > 10 {
			return nil, intervalOverflow
		}
		parts[count], src = int64(small(run)), after
		if count == 2 || len(src) == 0 || src[0] != ':' {
			count++
			break
		}
		src = src[1:]
	}
	var micros int64
	if len(src) > 0 && src[0] == '.' {
		run, after := digits(src[1:])
		micros, src = fraction(run, microsPerSecond), after
		if count == 2 { // MM:SS.fraction
			parts[0], parts[1], parts[2] = 0, parts[0], parts[1]
		}
	}
	if parts[0] > clockHoursMax || parts[1] > 59 || parts[2] > 60 {
		return nil, intervalOverflow
	}
	micros += parts[0]*microsPerHour + parts[1]*microsPerMinute + parts[2]*microsPerSecond
	if micros < 0 {
		return nil, intervalOverflow
	}
	if negative {
		micros = -micros
	}
	p.addMicros(micros)
	p.seen(fieldHour | fieldMinute | fieldSecond)
	if len(src) > 0 && !isSpace(src[0]) {
		return nil, badDatetime
	}
	return src, parsed
}

// yearMonth reads the months of years-months.
func (p *intervalParser) yearMonth(years, src []byte, negative bool) (rest []byte, f failure) {
	run, rest := digits(src)
	if len(rest) > 0 && !isSpace(rest[0]) {
		return nil, badDatetime
	}
	if len(years) > 9 || len(run) > 2 || small(run) > 11 {
		return nil, intervalOverflow
	}
	months := float64(small(years)*12 + small(run))
	if negative {
		months = -months
	}
	p.months += months
	p.seen(fieldYear | fieldMonth)
	return rest, parsed
}

// isoUnits are the letters of ISO 8601's designators before and after the T.
var isoUnits = [2]map[byte]intervalUnit{
	{'Y': {months: 12}, 'M': {months: 1}, 'W': {days: 7}, 'D': {days: 1}},
	{'H': {micros: microsPerHour}, 'M': {micros: microsPerMinute}, 'S': {micros: microsPerSecond}},
}

// iso reads what follows the P of ISO 8601's format with designators, or of its alternative format.
func (p *intervalParser) iso(src []byte) failure {
	half := 0
	for len(src) > 0 {
		if src[0] == 'T' {
			if half == 1 {
				return badDatetime
			}
			half, src = 1, src[1:]
			p.parts++ // PT alone is zero
			continue
		}
		n, rest, ok := scanNumber(src)
		if !ok {
			return badDatetime
		}
		if half == 1 && len(rest) > 0 && rest[0] == ':' {
			after, f := p.clock(skipSign(src), src[0] == '-')
			if f == parsed && len(after) > 0 {
				f = badDatetime
			}
			return f
		}
		if len(rest) == 0 || rest[0] == '-' || rest[0] == 'T' && half == 0 {
			rest, f := p.isoDate(src)
			if f != parsed {
				return f
			}
			src = rest
			continue
		}
		unit, known := isoUnits[half][rest[0]]
		if !known {
			return badDatetime
		}
		p.add(n, unit)
		src = rest[1:]
	}
	return parsed
}

// isoDate reads the alternative format's years-months-days.
func (p *intervalParser) isoDate(src []byte) (rest []byte, f failure) {
	for _, unit := range [...]intervalUnit{{months: 12}, {months: 1}, {days: 1}} {
		n, after, ok := scanNumber(src)
		if !ok {
			return nil, badDatetime
		}
		p.add(n, unit)
		src = after
		if len(src) == 0 || src[0] != '-' {
			break
		}
		src = src[1:]
		if len(src) == 0 {
			return nil, badDatetime
		}
	}
	return src, parsed
}
