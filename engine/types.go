package engine

import (
	"slices"

	"github.com/duckdb/duckdb-go/v2/mapping"

	"sluice/engine/pgcodec"
)

// logicalType copies DuckDB's description of a type, nested ones included, so that no handle has to be kept.
func logicalType(t mapping.LogicalType) *pgcodec.LogicalType {
	lt := &pgcodec.LogicalType{ID: pgcodec.Duck(mapping.GetTypeId(t)), Alias: mapping.LogicalTypeGetAlias(t)}
	switch mapping.GetTypeId(t) {
	case mapping.TypeDecimal:
		lt.Width, lt.Scale = mapping.DecimalWidth(t), mapping.DecimalScale(t)
	case mapping.TypeEnum:
		lt.EnumBits = enumBits[mapping.EnumInternalType(t)]
		for i := range uint64(mapping.EnumDictionarySize(t)) {
			lt.Enum = append(lt.Enum, mapping.EnumDictionaryValue(t, mapping.IdxT(i)))
		}
	case mapping.TypeList:
		lt.Child = ownedType(mapping.ListTypeChildType(t))
	case mapping.TypeArray:
		lt.Child, lt.ArrayLen = ownedType(mapping.ArrayTypeChildType(t)), int(mapping.ArrayTypeArraySize(t))
	case mapping.TypeMap:
		lt.Key, lt.Value = ownedType(mapping.MapTypeKeyType(t)), ownedType(mapping.MapTypeValueType(t))
		// A MAP is laid out as a LIST of STRUCT(key, value).
		lt.Child = &pgcodec.LogicalType{
			ID:     pgcodec.Duck(mapping.TypeStruct),
			Fields: []pgcodec.Field{{Name: "key", Type: lt.Key}, {Name: "value", Type: lt.Value}},
		}
	case mapping.TypeStruct:
		for i := range uint64(mapping.StructTypeChildCount(t)) {
			n := mapping.IdxT(i)
			lt.Fields = append(lt.Fields, pgcodec.Field{Name: mapping.StructTypeChildName(t, n), Type: ownedType(mapping.StructTypeChildType(t, n))})
		}
	case mapping.TypeUnion:
		for i := range uint64(mapping.UnionTypeMemberCount(t)) {
			n := mapping.IdxT(i)
			lt.Fields = append(lt.Fields, pgcodec.Field{Name: mapping.UnionTypeMemberName(t, n), Type: ownedType(mapping.UnionTypeMemberType(t, n))})
		}
	}
	return lt
}

// enumBits is the width of an ENUM's physical integers.
var enumBits = map[mapping.Type]uint8{mapping.TypeUTinyInt: 8, mapping.TypeUSmallInt: 16, mapping.TypeUInteger: 32}

// sameLayout reports whether vectors of both types are laid out alike in memory, whatever the types and their fields are
// called.
func sameLayout(a, b *pgcodec.LogicalType) bool {
	if a == nil || b == nil {
		return a == b
	}
	field := func(a, b pgcodec.Field) bool { return sameLayout(a.Type, b.Type) }
	return a.ID == b.ID && a.Width == b.Width && a.Scale == b.Scale && a.ArrayLen == b.ArrayLen && slices.Equal(a.Enum, b.Enum) &&
		sameLayout(a.Child, b.Child) && sameLayout(a.Key, b.Key) && sameLayout(a.Value, b.Value) && slices.EqualFunc(a.Fields, b.Fields, field)
}

// ownedType describes t and destroys the handle. No handle, which DuckDB gives where it could not tell a type yet, is the
// invalid type.
func ownedType(t mapping.LogicalType) *pgcodec.LogicalType {
	if t.Ptr == nil {
		return &pgcodec.LogicalType{ID: pgcodec.Invalid}
	}
	defer mapping.DestroyLogicalType(&t)
	return logicalType(t)
}

// unionTag is the type of a UNION's first child, which says which member a row has.
var unionTag = &pgcodec.LogicalType{ID: pgcodec.Duck(mapping.TypeUTinyInt)}

// newVector makes a vector for values of t with its children, to be pointed at one chunk after the other.
func newVector(t *pgcodec.LogicalType) pgcodec.Vector {
	v := pgcodec.Vector{Type: t}
	switch mapping.Type(t.ID) {
	case mapping.TypeList, mapping.TypeMap, mapping.TypeArray:
		v.Children = []pgcodec.Vector{newVector(t.Child)}
	case mapping.TypeUnion:
		v.Children = append(v.Children, newVector(unionTag))
		fallthrough
	case mapping.TypeStruct:
		for _, f := range t.Fields {
			v.Children = append(v.Children, newVector(f.Type))
		}
	}
	return v
}

// pointVector points v at DuckDB's memory of vec, which has the given number of rows.
func pointVector(v *pgcodec.Vector, vec mapping.Vector, rows int) {
	v.Data, v.Validity, v.Size = mapping.VectorGetData(vec), mapping.VectorGetValidity(vec), rows
	switch mapping.Type(v.Type.ID) {
	case mapping.TypeList, mapping.TypeMap:
		pointVector(&v.Children[0], mapping.ListVectorGetChild(vec), int(mapping.ListVectorGetSize(vec)))
	case mapping.TypeArray:
		pointVector(&v.Children[0], mapping.ArrayVectorGetChild(vec), rows*v.Type.ArrayLen)
	case mapping.TypeStruct, mapping.TypeUnion:
		for i := range v.Children {
			pointVector(&v.Children[i], mapping.StructVectorGetChild(vec, mapping.IdxT(i)), rows)
		}
	}
}

// duckType makes DuckDB's handle for t; the caller destroys it.
func duckType(t *pgcodec.LogicalType) mapping.LogicalType {
	switch mapping.Type(t.ID) {
	case mapping.TypeDecimal:
		return mapping.CreateDecimalType(t.Width, t.Scale)
	case mapping.TypeList:
		child := duckType(t.Child)
		defer mapping.DestroyLogicalType(&child)
		return mapping.CreateListType(child)
	}
	return mapping.CreateLogicalType(mapping.Type(t.ID))
}
