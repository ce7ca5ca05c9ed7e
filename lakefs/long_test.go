package lakefs_test

import "flag"

// long asks for what takes minutes: every supported version of PostgreSQL, and faults by the hundred.
var long = flag.Bool("long", false, "run the tests that take minutes")
