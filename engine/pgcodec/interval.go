package pgcodec

import (
	"encoding/binary"
	"strconv"
)

// intervalParts is an INTERVAL as it is printed. Parts of one source value (years and months; hours to microseconds)
// have one sign.
type intervalParts struct {
	years, months, days, hours, minutes, seconds, micros int64
}

// split makes the parts.
func (i interval) split() intervalParts {
	return intervalParts{
		years: int64(i.months / 12), months: int64(i.months % 12), days: int64(i.days),
		hours: i.micros / microsPerHour, minutes: i.micros / microsPerMinute % 60,
		seconds: i.micros / microsPerSecond % 60, micros: i.micros % microsPerSecond,
	}
}

// negative says whether the time is below zero.
func (p *intervalParts) negative() bool {
	return p.hours < 0 || p.minutes < 0 || p.seconds < 0 || p.micros < 0
}

// hasTime says whether the time is not zero.
func (p *intervalParts) hasTime() bool {
	return p.hours != 0 || p.minutes != 0 || p.seconds != 0 || p.micros != 0
}

// textInterval writes an INTERVAL as IntervalStyle says.
func textInterval(dst []byte, v *Vector, row int, s *Settings) []byte {
	p := at[interval](v, row).split()
	switch s.IntervalStyle {
	case IntervalPostgresVerbose:
		return p.appendVerbose(dst)
	case IntervalSQLStandard:
		return p.appendStandard(dst)
	case IntervalISO8601:
		return p.appendISO(dst)
	}
	return p.appendPostgres(dst)
}

// binInterval writes microseconds, days and months.
func binInterval(dst []byte, v *Vector, row int, _ *Settings) []byte {
	i := at[interval](v, row)
	dst = binary.BigEndian.AppendUint64(dst, uint64(i.micros))
	dst = binary.BigEndian.AppendUint32(dst, uint32(i.days))
	return binary.BigEndian.AppendUint32(dst, uint32(i.months))
}

// abs gives the absolute value.
func abs(n int64) int64 {
	if n < 0 {
		return -n
	}
	return n
}

// appendSeconds writes seconds and their fraction without a sign; two digits if filled.
func appendSeconds(dst []byte, seconds, micros int64, filled bool) []byte {
	seconds = abs(seconds)
	if filled {
		dst = append2(dst, int(seconds))
	} else {
		dst = strconv.AppendInt(dst, seconds, 10)
	}
	return appendFraction(dst, abs(micros))
}

// appendHoursMinutes writes HH:MM: without a sign; hours have at least width digits.
func appendHoursMinutes(dst []byte, hours, minutes int64, width int) []byte {
	hours = abs(hours)
	if width == 2 && hours < 10 {
		dst = append(dst, '0')
	}
	dst = append(strconv.AppendInt(dst, hours, 10), ':')
	return append(append2(dst, int(abs(minutes))), ':')
}

// appendPostgres writes `1 year 2 mons 3 days 04:05:06`. After a negative part a positive one has a plus sign.
func (p *intervalParts) appendPostgres(dst []byte) []byte {
	empty, before := true, false
	part := func(n int64, unit string) {
		if n == 0 {
			return
		}
		if !empty {
			dst = append(dst, ' ')
		}
		if before && n > 0 {
			dst = append(dst, '+')
		}
		dst = append(append(strconv.AppendInt(dst, n, 10), ' '), unit...)
		if n != 1 {
			dst = append(dst, 's')
		}
		empty, before = false, n < 0
	}
	part(p.years, "year")
	part(p.months, "mon")
	part(p.days, "day")
	if !empty && !p.hasTime() {
		return dst
	}
	if !empty {
		dst = append(dst, ' ')
	}
	switch {
	case p.negative():
		dst = append(dst, '-')
	case before:
		dst = append(dst, '+')
	}
	return appendSeconds(appendHoursMinutes(dst, p.hours, p.minutes, 2), p.seconds, p.micros, true)
}

// appendVerbose writes `@ 1 year 2 mons 3 days 4 hours 5 mins 6 secs`, with `ago` where the first part is negative.
func (p *intervalParts) appendVerbose(dst []byte) []byte {
	empty, before := true, false
	dst = append(dst, '@')
	part := func(n int64, unit string) {
		switch {
		case n == 0:
			return
		case empty:
			before = n < 0
			n = abs(n)
		case before:
			n = -n
		}
		dst = append(append(strconv.AppendInt(append(dst, ' '), n, 10), ' '), unit...)
		if n != 1 {
			dst = append(dst, 's')
		}
		empty = false
	}
	part(p.years, "year")
	part(p.months, "mon")
	part(p.days, "day")
	part(p.hours, "hour")
	part(p.minutes, "min")
	if p.seconds != 0 || p.micros != 0 {
		dst = append(dst, ' ')
		switch negative := p.seconds < 0 || p.micros < 0; {
		case negative && empty:
			before = true
		case negative != before:
			dst = append(dst, '-')
		}
		dst = append(appendSeconds(dst, p.seconds, p.micros, false), " sec"...)
		if abs(p.seconds) != 1 || p.micros != 0 {
			dst = append(dst, 's')
		}
		empty = false
	}
	if empty {
		dst = append(dst, " 0"...)
	}
	if before {
		dst = append(dst, " ago"...)
	}
	return dst
}

// appendStandard writes the SQL standard's `1-2`, `3 4:05:06`, and `+1-2 +3 +4:05:06` for what the standard has no
// form for.
func (p *intervalParts) appendStandard(dst []byte) []byte {
	yearMonth := p.years != 0 || p.months != 0
	dayTime := p.days != 0 || p.hasTime()
	negative := p.years < 0 || p.months < 0 || p.days < 0 || p.negative()
	positive := p.years > 0 || p.months > 0 || p.days > 0 || p.hasTime() && !p.negative()
	if !negative && !positive {
		return append(dst, '0')
	}
	if negative && positive || yearMonth && dayTime {
		dst = appendSign(dst, p.years < 0 || p.months < 0)
		dst = append(strconv.AppendInt(dst, abs(p.years), 10), '-')
		dst = append(strconv.AppendInt(dst, abs(p.months), 10), ' ')
		dst = appendSign(dst, p.days < 0)
		dst = append(strconv.AppendInt(dst, abs(p.days), 10), ' ')
		dst = appendSign(dst, p.negative())
		return appendSeconds(appendHoursMinutes(dst, p.hours, p.minutes, 1), p.seconds, p.micros, true)
	}
	if negative {
		dst = append(dst, '-')
	}
	if yearMonth {
		dst = append(strconv.AppendInt(dst, abs(p.years), 10), '-')
		return strconv.AppendInt(dst, abs(p.months), 10)
	}
	if p.days != 0 {
		dst = append(strconv.AppendInt(dst, abs(p.days), 10), ' ')
	}
	return appendSeconds(appendHoursMinutes(dst, p.hours, p.minutes, 1), p.seconds, p.micros, true)
}

// appendSign writes plus or minus.
func appendSign(dst []byte, negative bool) []byte {
	if negative {
		return append(dst, '-')
	}
	return append(dst, '+')
}

// appendISO writes `P1Y2M3DT4H5M6S`.
func (p *intervalParts) appendISO(dst []byte) []byte {
	if *p == (intervalParts{}) {
		return append(dst, "PT0S"...)
	}
	part := func(n int64, unit byte) {
		if n != 0 {
			dst = append(strconv.AppendInt(dst, n, 10), unit)
		}
	}
	dst = append(dst, 'P')
	part(p.years, 'Y')
	part(p.months, 'M')
	part(p.days, 'D')
	if !p.hasTime() {
		return dst
	}
	dst = append(dst, 'T')
	part(p.hours, 'H')
	part(p.minutes, 'M')
	if p.seconds == 0 && p.micros == 0 {
		return dst
	}
	if p.seconds < 0 || p.micros < 0 {
		dst = append(dst, '-')
	}
	return append(appendSeconds(dst, p.seconds, p.micros, false), 'S')
}
