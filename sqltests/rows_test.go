package sqltests

import (
	"encoding/binary"
	"fmt"
	"strconv"
	"testing"
)

// TestRows_ChunkBoundaries: the engine hands rows over in chunks of 2,048 and files in row groups of 122,880; none is lost or
// doubled where one ends, in text or in binary, made up or read from a file.
func TestRows_ChunkBoundaries(t *testing.T) {
	conn := shared(t).connect(t)
	mustExec(t, conn, "create table boundaries as select i from range(1, 250001) r(i)")
	defer run(conn, "drop table boundaries")
	for _, source := range []string{"generate_series(1, %d) as g(i)", "boundaries where i <= %d"} {
		for _, rows := range []int{0, 1, 1023, 1024, 1025, 2047, 2048, 2049, 4096, 122879, 122880, 122881, 245760} {
			sql := "select i::int8 from " + fmt.Sprintf(source, rows)
			for format, number := range map[int16]func([]byte) int{0: fromText, 1: fromBinary} {
				result := conn.ExecParams(t.Context(), sql, nil, nil, nil, []int16{format})
				count, sum := 0, 0
				for result.NextRow() {
					count, sum = count+1, sum+number(result.Values()[0])
				}
				if _, err := result.Close(); err != nil || count != rows || sum != rows*(rows+1)/2 {
					t.Errorf("%s, format %d: %d rows, sum %d, %v", sql, format, count, sum, err)
				}
			}
		}
	}
}

func fromText(b []byte) int {
	n, err := strconv.Atoi(string(b))
	if err != nil {
		return -1
	}
	return n
}

func fromBinary(b []byte) int { return int(binary.BigEndian.Uint64(b)) }
