package pgcodec

import (
	"encoding/binary"
	"strings"

	"github.com/jackc/pgerrcode"

	"sluice/engine/pgerr"
)

// arrayDimensionsMax is PostgreSQL's MAXDIM.
const arrayDimensionsMax = 6

// depth counts the LISTs and ARRAYs round the innermost type.
func (t *LogicalType) depth() int {
	n := 0
	for ; t.nested(); t = t.Child {
		n++
	}
	return n
}

// textArray writes a LIST or ARRAY as PostgreSQL's array literal. Lists of unequal length appear as they are.
func textArray(t *LogicalType) Encoder {
	elements := arrayElements(t)
	if t.depth() == 1 {
		return elements
	}
	return func(dst []byte, v *Vector, row int, s *Settings) []byte {
		if !hasLeaf(t, v, row) {
			return append(dst, '{', '}') // an array without elements has no dimensions
		}
		return elements(dst, v, row, s)
	}
}

// arrayElements writes one level's braces and what is in them.
func arrayElements(t *LogicalType) Encoder {
	var encode Encoder
	leaf := !t.Child.nested()
	if leaf {
		encode = TextEncoder(t.Child)
	} else {
		encode = arrayElements(t.Child)
	}
	return func(dst []byte, v *Vector, row int, s *Settings) []byte {
		start, count := elements(t, v, row)
		child := &v.Children[0]
		dst = append(dst, '{')
		for i := start; i < start+count; i++ {
			if i > start {
				dst = append(dst, ',')
			}
			if !child.valid(i) {
				dst = append(dst, "NULL"...)
				continue
			}
			from := len(dst)
			dst = encode(dst, child, i, s)
			if leaf {
				dst = quoteElement(dst, from)
			}
		}
		return append(dst, '}')
	}
}

// hasLeaf says whether there is any element, or NULL, below the lists of a row.
func hasLeaf(t *LogicalType, v *Vector, row int) bool {
	start, count := elements(t, v, row)
	if !t.Child.nested() {
		return count > 0
	}
	child := &v.Children[0]
	for i := start; i < start+count; i++ {
		if !child.valid(i) || hasLeaf(t.Child, child, i) {
			return true
		}
	}
	return false
}

// quoteElement puts the text from a place on in quotes where an array literal needs them.
func quoteElement(dst []byte, from int) []byte {
	text := dst[from:]
	escapes, quote := 0, len(text) == 0
	for _, b := range text {
		switch b {
		case '"', '\\':
			escapes++
			quote = true
		case '{', '}', ',', ' ', '\t', '\n', '\r', '\v', '\f':
			quote = true
		}
	}
	if !quote && !(len(text) == 4 && strings.EqualFold(string(text), "null")) {
		return dst
	}
	return quoteInPlace(dst, from, escapes)
}

// quoteInPlace moves the text from a place on to the right, between quotes, and sets a backslash before each of the
// escapes quotes and backslashes in it.
func quoteInPlace(dst []byte, from, escapes int) []byte {
	read := len(dst) - 1
	for range escapes + 2 {
		dst = append(dst, 0)
	}
	write := len(dst) - 1
	dst[write] = '"'
	for write--; read >= from; read-- {
		dst[write] = dst[read]
		write--
		if dst[read] == '"' || dst[read] == '\\' {
			dst[write] = '\\'
			write--
		}
	}
	dst[from] = '"'
	return dst
}

// binArray writes PostgreSQL's binary array: dimensions, a flag for NULLs, the element's OID, size and lower bound of
// each dimension, then the elements with their lengths. RowEncoder has made sure that the lists are rectangular.
func binArray(t *LogicalType) Encoder {
	inner := t.innermost()
	encode, oid, depth := BinaryEncoder(inner), rowOf(inner).oid, t.depth()
	return func(dst []byte, v *Vector, row int, s *Settings) []byte {
		var sizes [arrayDimensionsMax]int
		header := len(dst)
		if !hasLeaf(t, v, row) || depth > arrayDimensionsMax {
			dst = append(dst, 0, 0, 0, 0, 0, 0, 0, 0)
			return binary.BigEndian.AppendUint32(dst, oid)
		}
		measure(t, v, row, sizes[:])
		dst = binary.BigEndian.AppendUint32(dst, uint32(depth))
		dst = append(dst, 0, 0, 0, 0)
		dst = binary.BigEndian.AppendUint32(dst, oid)
		for _, n := range sizes[:depth] {
			dst = binary.BigEndian.AppendUint32(dst, uint32(n))
			dst = binary.BigEndian.AppendUint32(dst, 1)
		}
		dst, nulls := appendLeaves(dst, t, v, row, encode, s)
		if nulls {
			dst[header+7] = 1
		}
		return dst
	}
}

// measure writes the lengths of a row's first list, of that list's first list, and so on.
func measure(t *LogicalType, v *Vector, row int, sizes []int) {
	start, count := elements(t, v, row)
	sizes[0] = count
	if t.Child.nested() && count > 0 && v.Children[0].valid(start) {
		measure(t.Child, &v.Children[0], start, sizes[1:])
	}
}

// appendLeaves writes the elements of a row in order, and says whether NULLs are among them.
func appendLeaves(dst []byte, t *LogicalType, v *Vector, row int, encode Encoder, s *Settings) (_ []byte, nulls bool) {
	start, count := elements(t, v, row)
	child := &v.Children[0]
	for i := start; i < start+count; i++ {
		switch {
		case t.Child.nested():
			var below bool
			dst, below = appendLeaves(dst, t.Child, child, i, encode, s)
			nulls = nulls || below
		case !child.valid(i):
			dst = append(dst, 0xff, 0xff, 0xff, 0xff)
			nulls = true
		default:
			length := len(dst)
			dst = encode(append(dst, 0, 0, 0, 0), child, i, s)
			binary.BigEndian.PutUint32(dst[length:], uint32(len(dst)-length-4))
		}
	}
	return dst, nulls
}

// arrayCheck makes the check of nested lists in binary: nil for types that always have a binary form.
func arrayCheck(t *LogicalType) func(v *Vector, row int) error {
	depth := t.depth()
	if depth < 2 || t.asJSON() {
		return nil
	}
	if depth > arrayDimensionsMax {
		return func(*Vector, int) error {
			return pgerr.Newf(pgerrcode.ProgramLimitExceeded, "number of array dimensions (%d) exceeds the maximum allowed (%d)", depth, arrayDimensionsMax)
		}
	}
	return func(v *Vector, row int) error {
		var sizes [arrayDimensionsMax]int
		if !hasLeaf(t, v, row) {
			return nil
		}
		measure(t, v, row, sizes[:])
		if rectangular(t, v, row, sizes[:]) {
			return nil
		}
		return pgerr.New(pgerrcode.ArraySubscriptError, "lists of unequal length have no binary array format").
			WithHint("Ask for the column in text format, or cast it to json.")
	}
}

// rectangular says whether all lists of a level have the length given for it and none of them is NULL.
func rectangular(t *LogicalType, v *Vector, row int, sizes []int) bool {
	start, count := elements(t, v, row)
	if count != sizes[0] {
		return false
	}
	if !t.Child.nested() {
		return true
	}
	child := &v.Children[0]
	for i := start; i < start+count; i++ {
		if !child.valid(i) || !rectangular(t.Child, child, i, sizes[1:]) {
			return false
		}
	}
	return true
}
