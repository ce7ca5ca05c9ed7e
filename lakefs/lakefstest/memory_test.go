package lakefstest_test

import (
	"testing"

	"sluice/lakefs"
	"sluice/lakefs/lakefstest"
)

func TestMemory(t *testing.T) {
	lakefstest.Run(t, func(*testing.T) lakefs.Store { return lakefstest.NewMemory() })
}

func TestMemory_Shared(t *testing.T) {
	m := lakefstest.NewMemory()
	lakefstest.RunShared(t, lakefstest.Shared{
		Open: func(*testing.T) lakefs.Store { return m },
		Reap: func(*testing.T) { m.Reap() },
	})
}
