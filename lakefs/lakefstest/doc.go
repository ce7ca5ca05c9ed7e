// Package lakefstest holds what every lakefs.Store must do, as tests, and stores for tests of what is above one.
//
//	Run         the rules for one store
//	RunShared   the rules for several stores over one place, and for what a reap takes away
//	RunFaults   what callers count on when calls fail
//	Workload    random changes and reads that are checked against a model, with faults of any origin
//	Memory      a store in memory: the model that others are compared with (FuzzOps of package lakefs)
//	Faulty      a store over another one that fails by rules and writes every call down
//
// A rule that only some stores could have (rows, connections, standbys) is tested where they are.
package lakefstest
