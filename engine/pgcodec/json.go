package pgcodec

import "math"

// jsonStyle are the settings of text inside a JSON document, which has to look the same in every session. The style of
// time stamps is jsonTimestamp's own.
var jsonStyle = Settings{ExtraFloatDigits: 1}

// textJSON writes a STRUCT, MAP or UNION, or a list of them, as one JSON document: spelled as PostgreSQL's to_json
// spells it. Both formats of json are the same bytes.
func textJSON(t *LogicalType) Encoder {
	switch t.ID {
	case Struct:
		return jsonStruct(t)
	case Map:
		return jsonMap(t)
	case Union:
		return jsonUnion(t)
	case List, Array:
		return jsonList(t)
	case Boolean:
		return jsonBool
	case Float:
		return jsonFloat4
	case Double:
		return jsonFloat8
	case Timestamp, TimestampS, TimestampMS, TimestampNS, TimestampTZ:
		return jsonTimestamp(t)
	case TinyInt, SmallInt, Integer, BigInt, UTinyInt, USmallInt, UInteger, UBigInt, HugeInt, UHugeInt, BigNum, Decimal:
		return TextEncoder(t)
	}
	if t.isJSON() {
		return rawBytes
	}
	return quoted(TextEncoder(t))
}

// quoted makes an encoder of JSON strings from one of text.
func quoted(encode Encoder) Encoder {
	return func(dst []byte, v *Vector, row int, _ *Settings) []byte {
		from := len(dst)
		return quoteJSON(encode(dst, v, row, &jsonStyle), from)
	}
}

// jsonMember is one value inside a document: its name with quotes and colon (empty in lists), and its encoder.
type jsonMember struct {
	name   []byte
	encode Encoder
}

// members makes those of a STRUCT or UNION.
func (t *LogicalType) members() []jsonMember {
	m := make([]jsonMember, len(t.Fields))
	for i, f := range t.Fields {
		m[i] = jsonMember{append(quoteJSON([]byte(f.Name), 0), ':'), textJSON(f.Type)}
	}
	return m
}

// append writes a member, null included.
func (m *jsonMember) append(dst []byte, v *Vector, row int, s *Settings) []byte {
	dst = append(dst, m.name...)
	if !v.valid(row) {
		return append(dst, "null"...)
	}
	return m.encode(dst, v, row, s)
}

// jsonStruct writes an object with the fields in their order.
func jsonStruct(t *LogicalType) Encoder {
	members := t.members()
	return func(dst []byte, v *Vector, row int, s *Settings) []byte {
		dst = append(dst, '{')
		for i := range members {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = members[i].append(dst, &v.Children[i], row, s)
		}
		return append(dst, '}')
	}
}

// jsonUnion writes an object of one key, the member that the tag names.
func jsonUnion(t *LogicalType) Encoder {
	members := t.members()
	return func(dst []byte, v *Vector, row int, s *Settings) []byte {
		tag := int(at[uint8](&v.Children[0], row))
		if tag >= len(members) {
			return append(dst, '{', '}')
		}
		return append(members[tag].append(append(dst, '{'), &v.Children[1+tag], row, s), '}')
	}
}

// jsonMap writes an object; keys that are no strings become strings of their text.
func jsonMap(t *LogicalType) Encoder {
	key, value := quoted(TextEncoder(t.Key)), jsonMember{encode: textJSON(t.Value)}
	return func(dst []byte, v *Vector, row int, s *Settings) []byte {
		start, count := elements(t, v, row)
		entries := &v.Children[0]
		dst = append(dst, '{')
		for i := start; i < start+count; i++ {
			if i > start {
				dst = append(dst, ',')
			}
			dst = append(key(dst, &entries.Children[0], i, s), ':')
			dst = value.append(dst, &entries.Children[1], i, s)
		}
		return append(dst, '}')
	}
}

// jsonList writes an array.
func jsonList(t *LogicalType) Encoder {
	member := jsonMember{encode: textJSON(t.Child)}
	return func(dst []byte, v *Vector, row int, s *Settings) []byte {
		start, count := elements(t, v, row)
		dst = append(dst, '[')
		for i := start; i < start+count; i++ {
			if i > start {
				dst = append(dst, ',')
			}
			dst = member.append(dst, &v.Children[0], i, s)
		}
		return append(dst, ']')
	}
}

// jsonBool writes true or false.
func jsonBool(dst []byte, v *Vector, row int, _ *Settings) []byte {
	if at[uint8](v, row) != 0 {
		return append(dst, "true"...)
	}
	return append(dst, "false"...)
}

// jsonFloat4 writes a FLOAT.
func jsonFloat4(dst []byte, v *Vector, row int, _ *Settings) []byte {
	return appendJSONFloat(dst, float64(at[float32](v, row)), 32)
}

// jsonFloat8 writes a DOUBLE.
func jsonFloat8(dst []byte, v *Vector, row int, _ *Settings) []byte {
	return appendJSONFloat(dst, at[float64](v, row), 64)
}

// appendJSONFloat writes a number, or a string where JSON has no number.
func appendJSONFloat(dst []byte, f float64, bits int) []byte {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return append(appendFloat(append(dst, '"'), f, bits, &jsonStyle), '"')
	}
	return appendFloat(dst, f, bits, &jsonStyle)
}

// jsonTimestamp writes ISO 8601 with a T, and TIMESTAMPTZ in the session's zone with hours and minutes of its offset.
func jsonTimestamp(t *LogicalType) Encoder {
	read, withZone := microsOf(t.ID), t.ID == TimestampTZ
	return func(dst []byte, v *Vector, row int, s *Settings) []byte {
		micros := read(v, row)
		dst = append(dst, '"')
		if micros == timestampInfinity || micros == timestampNegInf {
			return append(appendTimestamp(dst, micros, nil, &jsonStyle), '"')
		}
		var zone *zoned
		if withZone {
			zone = &zoned{offset: s.zoneOffset(floorDiv(micros, microsPerSecond))}
		}
		c, clock := splitMicros(micros, zone)
		dst = appendClock(append(c.appendISO(dst), 'T'), clock)
		if zone != nil {
			dst = appendOffset(dst, zone.offset)
			if zone.offset%3600 == 0 {
				dst = append(dst, ":00"...)
			}
		}
		return append(c.appendBC(dst), '"')
	}
}

// jsonEscapes are the short escapes of control characters.
var jsonEscapes = [' ']byte{'\b': 'b', '\f': 'f', '\n': 'n', '\r': 'r', '\t': 't'}

// quoteJSON puts the text from a place on in quotes and escapes what JSON wants escaped.
func quoteJSON(dst []byte, from int) []byte {
	escapes, long := 0, false
	for _, b := range dst[from:] {
		switch {
		case b == '"' || b == '\\':
			escapes++
		case b < ' ':
			long = true
		}
	}
	if !long {
		return quoteInPlace(dst, from, escapes)
	}
	text := append([]byte(nil), dst[from:]...) // rare: control characters
	dst = append(dst[:from], '"')
	for _, b := range text {
		switch {
		case b == '"' || b == '\\':
			dst = append(dst, '\\', b)
		case b >= ' ':
			dst = append(dst, b)
		case jsonEscapes[b] != 0:
			dst = append(dst, '\\', jsonEscapes[b])
		default:
			dst = append(dst, '\\', 'u', '0', '0', hexDigits[b>>4], hexDigits[b&15])
		}
	}
	return append(dst, '"')
}
