// Package lakefstest holds what every lakefs.Store must do, as tests ([Run]), and a store in memory ([NewMemory]) for
// tests of what is above one.
package lakefstest
