// Prints abi/layout.inc as lines of "name = number".
#include <cstdio>
#include <cstring>
#include <type_traits>

#pragma GCC diagnostic ignored "-Winvalid-offsetof"

namespace duckdb {

// A pointer to a virtual member function holds its place in the class's table, by the Itanium C++ ABI.
template <class F>
static long long place(F function) {
	long long words[2] = {0, 0};
	std::memcpy(words, &function, sizeof function);
	return words[0] | (words[1] & 1);
}

static void print() {
#define NUMBER(e) std::printf("%s = %lld\n", #e, (long long)(e));
#define SIZE(t) std::printf("sizeof(%s) = %zu\n", #t, sizeof(t));
#define OFFSET(t, m) std::printf("offsetof(%s, %s) = %zu\n", #t, #m, offsetof(t, m));
#define SLOT(label, result, type, parameters, f) { using member = result (type::*) parameters; std::printf("virtual %s at %lld\n", #label, place(member(f))); }
#define FUNCTION(f, ...) std::printf("%s is %d\n", #f, int(std::is_same<decltype(::f), __VA_ARGS__>::value));
#include "layout.inc"
	std::fflush(stdout);
}

} // namespace duckdb
