package pgcodec

import (
	"encoding/binary"
	"math"
	"strconv"
	"time"
)

// DuckDB counts days and microseconds from 1970, PostgreSQL from 2000.
const (
	microsPerSecond int64 = 1_000_000
	microsPerMinute       = 60 * microsPerSecond
	microsPerHour         = 60 * microsPerMinute
	microsPerDay          = 24 * microsPerHour
	secondsPerDay   int64 = 86_400
	epochDays       int32 = 10_957
	epochMicros           = int64(epochDays) * microsPerDay
)

// Both systems keep infinities at the ends of the range; DuckDB's negative one is the negated positive one, not the
// smallest number.
const (
	dateInfinity      int32 = math.MaxInt32
	dateNegInfinity         = -math.MaxInt32
	timestampInfinity int64 = math.MaxInt64
	timestampNegInf         = -math.MaxInt64
)

// civil is a date of the proleptic Gregorian calendar; year 0 is 1 BC.
type civil struct {
	year       int64
	month, day int
}

// civilOf turns days since 1970 into a date. The year is counted from March, so that leap days come last.
func civilOf(days int64) civil {
	days += 719_468 // to 1 March of year 0
	era := floorDiv(days, 146_097)
	doe := days - era*146_097
	yoe := (doe - doe/1460 + doe/36_524 - doe/146_096) / 365
	doy := doe - (365*yoe + yoe/4 - yoe/100)
	mp := (5*doy + 2) / 153
	c := civil{year: yoe + era*400, day: int(doy-(153*mp+2)/5) + 1, month: int(mp) + 3}
	if c.month > 12 {
		c.month -= 12
		c.year++
	}
	return c
}

// days turns a date into days since 1970.
func (c civil) days() int64 {
	year, month := c.year, int64(c.month)
	if month <= 2 {
		year--
		month += 12
	}
	era := floorDiv(year, 400)
	yoe := year - era*400
	doy := (153*(month-3)+2)/5 + int64(c.day) - 1
	return era*146_097 + yoe*365 + yoe/4 - yoe/100 + doy - 719_468
}

// floorDiv divides and rounds down; b is positive.
func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

// append2 writes two digits.
func append2(dst []byte, n int) []byte {
	return append(dst, '0'+byte(n/10), '0'+byte(n%10))
}

// appendYear writes at least four digits, and BC years as they are counted: 1, 2, … The suffix is appendBC's.
func (c civil) appendYear(dst []byte) []byte {
	year := c.year
	if year <= 0 {
		year = 1 - year
	}
	if year < 10_000 {
		return append2(append2(dst, int(year/100)), int(year%100))
	}
	return strconv.AppendInt(dst, year, 10)
}

// appendBC writes the suffix of years before 1.
func (c civil) appendBC(dst []byte) []byte {
	if c.year <= 0 {
		return append(dst, " BC"...)
	}
	return dst
}

// appendISO writes YYYY-MM-DD.
func (c civil) appendISO(dst []byte) []byte {
	dst = append(c.appendYear(dst), '-')
	dst = append(append2(dst, c.month), '-')
	return append2(dst, c.day)
}

// append writes the date as DateStyle says. The Postgres style of time stamps is another, see appendTimestamp.
func (c civil) append(dst []byte, s *Settings) []byte {
	switch s.DateStyle {
	case DateSQL:
		return c.appendParts(dst, '/', s.DateOrder == OrderDMY)
	case DatePostgres:
		return c.appendParts(dst, '-', s.DateOrder == OrderDMY)
	case DateGerman:
		return c.appendParts(dst, '.', true)
	}
	return c.appendISO(dst)
}

// appendParts writes month, day and year, or day first, with a separator.
func (c civil) appendParts(dst []byte, separator byte, dayFirst bool) []byte {
	first, second := c.month, c.day
	if dayFirst {
		first, second = second, first
	}
	dst = append(append2(dst, first), separator)
	dst = append(append2(dst, second), separator)
	return c.appendYear(dst)
}

// textDate writes a DATE.
func textDate(dst []byte, v *Vector, row int, s *Settings) []byte {
	days := at[int32](v, row)
	switch days {
	case dateInfinity:
		return append(dst, "infinity"...)
	case dateNegInfinity:
		return append(dst, "-infinity"...)
	}
	c := civilOf(int64(days))
	if s == nil {
		return c.appendBC(c.appendISO(dst))
	}
	return c.appendBC(c.append(dst, s))
}

// binDate writes days since 2000.
func binDate(dst []byte, v *Vector, row int, _ *Settings) []byte {
	days := at[int32](v, row)
	switch {
	case days == dateInfinity:
	case days == dateNegInfinity:
		days = math.MinInt32
	case days <= math.MinInt32+epochDays:
		days = math.MinInt32 + 1 // 5.8 million BC
	default:
		days -= epochDays
	}
	return binary.BigEndian.AppendUint32(dst, uint32(days))
}

// appendClock writes HH:MM:SS and the fraction of the second without its last zeros. 24:00:00 is a time of day too.
func appendClock(dst []byte, micros int64) []byte {
	seconds := int(micros / microsPerSecond)
	dst = append(append2(dst, seconds/3600), ':')
	dst = append(append2(dst, seconds/60%60), ':')
	dst = append2(dst, seconds%60)
	return appendFraction(dst, micros%microsPerSecond)
}

// appendFraction writes a point and up to six digits; nothing for 0.
func appendFraction(dst []byte, micros int64) []byte {
	if micros == 0 {
		return dst
	}
	digits := 6
	for micros%10 == 0 {
		micros /= 10
		digits--
	}
	return appendPadded(append(dst, '.'), uint64(micros), digits)
}

// textTime writes a TIME.
func textTime(dst []byte, v *Vector, row int, _ *Settings) []byte {
	return appendClock(dst, at[int64](v, row))
}

// binTime writes microseconds since midnight.
func binTime(dst []byte, v *Vector, row int, _ *Settings) []byte {
	return binary.BigEndian.AppendUint64(dst, at[uint64](v, row))
}

// textTimeNS writes a TIME_NS without its nanoseconds.
func textTimeNS(dst []byte, v *Vector, row int, _ *Settings) []byte {
	return appendClock(dst, at[int64](v, row)/1000)
}

// binTimeNS writes microseconds since midnight.
func binTimeNS(dst []byte, v *Vector, row int, _ *Settings) []byte {
	return binary.BigEndian.AppendUint64(dst, uint64(at[int64](v, row)/1000))
}

// A TIME WITH TIME ZONE of DuckDB has the time in its upper 40 bits, and in its lower 24 the distance of its offset
// from +15:59:59, so that later instants sort later (duckdb/common/types/datetime.hpp, dtime_tz_t).
const (
	timeTZOffsetBits = 24
	timeTZOffsetMask = 1<<timeTZOffsetBits - 1
	timeTZOffsetMax  = 16*60*60 - 1
)

// splitTimeTZ gives microseconds since midnight and the offset in seconds east of UTC.
func splitTimeTZ(bits uint64) (micros int64, east int) {
	return int64(bits >> timeTZOffsetBits), timeTZOffsetMax - int(bits&timeTZOffsetMask)
}

// joinTimeTZ is splitTimeTZ's reverse.
func joinTimeTZ(micros int64, east int) uint64 {
	return uint64(micros)<<timeTZOffsetBits | uint64(timeTZOffsetMax-east)&timeTZOffsetMask
}

// appendOffset writes +HH, +HH:MM or +HH:MM:SS.
func appendOffset(dst []byte, east int) []byte {
	sign := byte('+')
	if east < 0 {
		sign, east = '-', -east
	}
	dst = append2(append(dst, sign), east/3600)
	if east%3600 != 0 {
		dst = append2(append(dst, ':'), east/60%60)
	}
	if east%60 != 0 {
		dst = append2(append(dst, ':'), east%60)
	}
	return dst
}

// textTimeTZ writes a TIME WITH TIME ZONE.
func textTimeTZ(dst []byte, v *Vector, row int, _ *Settings) []byte {
	micros, east := splitTimeTZ(at[uint64](v, row))
	return appendOffset(appendClock(dst, micros), east)
}

// binTimeTZ writes the time and the offset in seconds west of UTC.
func binTimeTZ(dst []byte, v *Vector, row int, _ *Settings) []byte {
	micros, east := splitTimeTZ(at[uint64](v, row))
	dst = binary.BigEndian.AppendUint64(dst, uint64(micros))
	return binary.BigEndian.AppendUint32(dst, uint32(int32(-east)))
}

// microsReader reads a time stamp of any precision as microseconds since 1970.
type microsReader func(v *Vector, row int) int64

// readMicros reads TIMESTAMP and TIMESTAMPTZ.
func readMicros(v *Vector, row int) int64 { return at[int64](v, row) }

// readScaled makes a reader of coarser time stamps; what does not fit becomes an infinity.
func readScaled(factor int64) microsReader {
	return func(v *Vector, row int) int64 {
		n := at[int64](v, row)
		switch {
		case n > timestampInfinity/factor:
			return timestampInfinity
		case n < timestampNegInf/factor:
			return timestampNegInf
		}
		return n * factor
	}
}

// readNanos reads TIMESTAMP_NS, rounding down.
func readNanos(v *Vector, row int) int64 {
	n := at[int64](v, row)
	if n == timestampInfinity || n == timestampNegInf {
		return n
	}
	return floorDiv(n, 1000)
}

// microsOf chooses the reader of a time stamp type.
func microsOf(id Duck) microsReader {
	switch id {
	case TimestampS:
		return readScaled(microsPerSecond)
	case TimestampMS:
		return readScaled(1000)
	case TimestampNS:
		return readNanos
	}
	return readMicros
}

// textTimestamp writes a time stamp without time zone.
func textTimestamp(t *LogicalType) Encoder {
	read := microsOf(t.ID)
	return func(dst []byte, v *Vector, row int, s *Settings) []byte {
		return appendTimestamp(dst, read(v, row), nil, s)
	}
}

// textTimestampTZ writes a TIMESTAMPTZ in the session's time zone.
func textTimestampTZ(dst []byte, v *Vector, row int, s *Settings) []byte {
	micros := at[int64](v, row)
	if micros == timestampInfinity || micros == timestampNegInf {
		return appendTimestamp(dst, micros, nil, s)
	}
	zone := zoned{offset: s.zoneOffset(floorDiv(micros, microsPerSecond)), unix: floorDiv(micros, microsPerSecond)}
	return appendTimestamp(dst, micros, &zone, s)
}

// zoned is the time zone of one instant.
type zoned struct {
	offset int   // seconds east of UTC
	unix   int64 // the instant, for the abbreviation that some styles print
}

// append writes the zone as the style asks.
func (z *zoned) append(dst []byte, s *Settings) []byte {
	if s.DateStyle == DateISO {
		return appendOffset(dst, z.offset)
	}
	location := s.Location
	if location == nil {
		location = time.UTC
	}
	name, _ := time.Unix(z.unix, 0).In(location).Zone()
	if name == "" {
		return appendOffset(append(dst, ' '), z.offset)
	}
	return append(append(dst, ' '), name...)
}

// appendTimestamp writes microseconds since 1970 as DateStyle says, with the zone's offset added where there is one.
func appendTimestamp(dst []byte, micros int64, zone *zoned, s *Settings) []byte {
	switch micros {
	case timestampInfinity:
		return append(dst, "infinity"...)
	case timestampNegInf:
		return append(dst, "-infinity"...)
	}
	c, clock := splitMicros(micros, zone)
	if s.DateStyle == DatePostgres {
		return c.appendPostgres(dst, clock, zone, s)
	}
	dst = appendClock(append(c.append(dst, s), ' '), clock)
	if zone != nil {
		dst = zone.append(dst, s)
	}
	return c.appendBC(dst)
}

// splitMicros gives date and time of day, in the zone's local time where there is one.
func splitMicros(micros int64, zone *zoned) (c civil, clock int64) {
	days := floorDiv(micros, microsPerDay)
	clock = micros - days*microsPerDay
	if zone != nil {
		clock += int64(zone.offset) * microsPerSecond
		shift := floorDiv(clock, microsPerDay)
		days, clock = days+shift, clock-shift*microsPerDay
	}
	return civilOf(days), clock
}

// appendPostgres writes the style `Wed Dec 17 07:37:16 1997 PST`.
func (c civil) appendPostgres(dst []byte, clock int64, zone *zoned, s *Settings) []byte {
	weekday := time.Weekday(((c.days()+4)%7 + 7) % 7) // 1970 began on a Thursday
	dst = append(append(dst, weekday.String()[:3]...), ' ')
	month := time.Month(c.month).String()[:3]
	if s.DateOrder == OrderDMY {
		dst = append(append(append2(dst, c.day), ' '), month...)
	} else {
		dst = append2(append(append(dst, month...), ' '), c.day)
	}
	dst = appendClock(append(dst, ' '), clock)
	dst = c.appendYear(append(dst, ' '))
	if zone != nil {
		dst = zone.append(dst, s)
	}
	return c.appendBC(dst)
}

// binTimestamp writes microseconds since 2000.
func binTimestamp(t *LogicalType) Encoder {
	read := microsOf(t.ID)
	return func(dst []byte, v *Vector, row int, _ *Settings) []byte {
		return binary.BigEndian.AppendUint64(dst, uint64(pgMicros(read(v, row))))
	}
}

// pgMicros moves microseconds from DuckDB's epoch and infinities to PostgreSQL's.
func pgMicros(micros int64) int64 {
	switch {
	case micros == timestampInfinity:
		return micros
	case micros == timestampNegInf:
		return math.MinInt64
	case micros <= math.MinInt64+epochMicros:
		return math.MinInt64 + 1 // 290,000 BC
	}
	return micros - epochMicros
}
