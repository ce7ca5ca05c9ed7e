package pgerr

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/jackc/pgerrcode"
)

func TestError_ChainAndFields(t *testing.T) {
	err := Newf(pgerrcode.QueryCanceled, "canceling statement due to %s", "user request").
		WithDetail("D.").WithHint("H.").WithPosition(3).WithWhere("W").WithCause(context.Canceled)
	wrapped := fmt.Errorf("run: %w", err)
	if !errors.Is(wrapped, context.Canceled) {
		t.Error("the cause is not found through Unwrap")
	}
	if Code(wrapped) != "57014" || From(wrapped) != err {
		t.Errorf("code %q, error %v", Code(wrapped), From(wrapped))
	}
	want := "ERROR: canceling statement due to user request (SQLSTATE 57014): context canceled"
	if err.Error() != want {
		t.Errorf("got %q, want %q", err.Error(), want)
	}
	if err.Detail != "D." || err.Hint != "H." || err.Position != 3 || err.Where != "W" {
		t.Errorf("fields: %+v", err)
	}
}

func TestError_CodeOfOthers(t *testing.T) {
	if got := Code(errors.New("x")); got != "" {
		t.Errorf("got %q", got)
	}
	if From(nil) != nil {
		t.Error("From(nil) is not nil")
	}
	if e := Fatal("57P01", "m"); e.Severity != SeverityFatal || e.SQLState() != "57P01" {
		t.Errorf("%+v", e)
	}
	if e := Notice(SeverityWarning, "01000", "m"); e.Severity != SeverityWarning {
		t.Errorf("%+v", e)
	}
}
