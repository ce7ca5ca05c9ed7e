package lakefstest_test

import (
	"testing"

	"sluice/lakefs"
	"sluice/lakefs/lakefstest"
)

func TestMemory(t *testing.T) {
	lakefstest.Run(t, func(*testing.T) lakefs.Store { return lakefstest.NewMemory() })
}
