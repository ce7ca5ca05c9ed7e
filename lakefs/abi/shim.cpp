// The layout as Sluice declares it.
#define private public
#define protected public
#include "../duckdb.hpp"
#include "print.hpp"

int main() { duckdb::print(); }
