package pgcodec

// Duck is a DuckDB logical type id, with the numbers of duckdb.h's DUCKDB_TYPE_*.
type Duck uint8

// DuckDB 1.5.5's type ids.
const (
	Invalid        Duck = 0
	Boolean        Duck = 1
	TinyInt        Duck = 2
	SmallInt       Duck = 3
	Integer        Duck = 4
	BigInt         Duck = 5
	UTinyInt       Duck = 6
	USmallInt      Duck = 7
	UInteger       Duck = 8
	UBigInt        Duck = 9
	Float          Duck = 10
	Double         Duck = 11
	Timestamp      Duck = 12
	Date           Duck = 13
	Time           Duck = 14
	Interval       Duck = 15
	HugeInt        Duck = 16
	Varchar        Duck = 17
	Blob           Duck = 18
	Decimal        Duck = 19
	TimestampS     Duck = 20
	TimestampMS    Duck = 21
	TimestampNS    Duck = 22
	Enum           Duck = 23
	List           Duck = 24
	Struct         Duck = 25
	Map            Duck = 26
	UUID           Duck = 27
	Union          Duck = 28
	Bit            Duck = 29
	TimeTZ         Duck = 30
	TimestampTZ    Duck = 31
	UHugeInt       Duck = 32
	Array          Duck = 33
	Any            Duck = 34
	BigNum         Duck = 35
	SQLNull        Duck = 36
	StringLiteral  Duck = 37
	IntegerLiteral Duck = 38
	TimeNS         Duck = 39
	Geometry       Duck = 40
	Variant        Duck = 41
)

// AliasJSON is the alias that DuckDB gives to VARCHAR columns of its JSON type.
const AliasJSON = "JSON"

// LogicalType describes one DuckDB type, nested ones included. It is immutable once made.
type LogicalType struct {
	ID       Duck
	Alias    string       // the name of a user type or of an extension's type, such as JSON
	Width    uint8        // DECIMAL: digits, 1 to 38; 0 in TypeOf's answer for numeric: as wide as the value
	Scale    uint8        // DECIMAL: digits after the point
	Enum     []string     // ENUM: the dictionary
	EnumBits uint8        // ENUM: 8, 16 or 32 bits of index
	Child    *LogicalType // LIST, ARRAY
	ArrayLen int          // ARRAY: elements of each row
	Fields   []Field      // STRUCT; UNION: the members without the tag
	Key      *LogicalType // MAP
	Value    *LogicalType // MAP
}

// Field is one field of a STRUCT or one member of a UNION.
type Field struct {
	Name string
	Type *LogicalType
}

// isJSON says whether the type's text already is JSON.
func (t *LogicalType) isJSON() bool { return t.ID == Varchar && t.Alias == AliasJSON }

// nested says whether a value is a list of values.
func (t *LogicalType) nested() bool { return t.ID == List || t.ID == Array }

// innermost is the element type under any number of LISTs and ARRAYs; t itself when it is none.
func (t *LogicalType) innermost() *LogicalType {
	for t.nested() {
		t = t.Child
	}
	return t
}

// decimalBytes is the size of one DECIMAL value in a vector, by its width as DuckDB chooses it.
func (t *LogicalType) decimalBytes() uintptr {
	switch {
	case t.Width <= 4:
		return 2
	case t.Width <= 9:
		return 4
	case t.Width <= 18:
		return 8
	}
	return 16
}
