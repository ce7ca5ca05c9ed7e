package engine

import "unsafe"

// unsafeAdd is the address n bytes into DuckDB's memory at p.
func unsafeAdd(p unsafe.Pointer, n uint64) unsafe.Pointer { return unsafe.Add(p, int(n)) }
