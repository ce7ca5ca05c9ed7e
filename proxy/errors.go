package proxy

import (
	"context"
	"errors"
	"math"
	"strings"

	"github.com/jackc/pgerrcode"
	"github.com/jackc/pgx/v5/pgproto3"

	"sluice/engine/pgerr"
)

// Causes with which a statement's context ends before the statement does.
var (
	errCanceled   = pgerr.New(pgerrcode.QueryCanceled, "canceling statement due to user request")
	errShutdown   = pgerr.Fatal(pgerrcode.AdminShutdown, "terminating connection due to administrator command")
	errClientGone = &brokenError{errors.New("client hung up while its statement ran")}
)

// brokenError is a connection that can no longer be used: nobody is left to be told. It ends the session
// where other errors are answered.
type brokenError struct{ cause error }

// Error says what happened to the connection.
func (e *brokenError) Error() string { return "connection lost: " + e.cause.Error() }

// Unwrap returns the connection's own error.
func (e *brokenError) Unwrap() error { return e.cause }

// fail answers a statement's error and leads to the state that skips until Sync.
func (s *session) fail(err error) (state, error) {
	if over, err := s.report(err); over {
		return nil, err
	}
	return s.drain, nil
}

// report sends one ErrorResponse, after the completions that came before it, and has the transaction fail:
// the engine knows of its own errors, not of ours. over tells that the session ends, with the
// connection's error if that is the reason.
func (s *session) report(err error) (over bool, lost error) {
	err = s.explain(err)
	var broken *brokenError
	if errors.As(err, &broken) {
		return true, broken
	}
	e := s.pgError(err)
	s.engine.Fail()
	s.block = true
	s.out.release()
	s.sendNotices()
	s.out.send(errorResponse(e))
	if e.Severity != pgerr.SeverityFatal && e.Severity != pgerr.SeverityPanic {
		return false, nil
	}
	return true, s.out.flush()
}

// explain replaces the error of an interrupted statement by why it was interrupted.
func (s *session) explain(err error) error {
	var e *pgerr.Error
	interrupted := errors.Is(err, context.Canceled) ||
		errors.As(err, &e) && e.Code == pgerrcode.QueryCanceled
	if !interrupted || s.work == nil {
		return err
	}
	cause := context.Cause(s.work.ctx)
	if errors.Is(cause, errCanceled) || errors.Is(cause, errShutdown) || errors.Is(cause, errClientGone) {
		return cause
	}
	return err
}

// pgError turns any error into what the client is told. One that the engine did not put into PostgreSQL's
// words is a bug of ours and logged as one.
func (s *session) pgError(err error) *pgerr.Error {
	e := clientError(err)
	if e.Code == pgerrcode.InternalError {
		s.log.Error().Err(err).AnErr("cause", e.Cause).Msg("internal error")
	} else {
		s.log.Debug().Str("code", e.Code).Str("severity", e.Severity).Msg("statement failed")
	}
	return e
}

// clientError finds the PostgreSQL error in err or makes one: an ended context, else XX000.
func clientError(err error) *pgerr.Error {
	var e *pgerr.Error
	var bad *badMessage
	switch {
	case errors.As(err, &e):
		return e
	case errors.As(err, &bad):
		return pgerr.New(pgerrcode.ProtocolViolation, "invalid message format").WithCause(err)
	case errors.Is(err, context.DeadlineExceeded):
		return pgerr.New(pgerrcode.QueryCanceled, "canceling statement due to timeout").WithCause(err)
	case errors.Is(err, context.Canceled):
		return errCanceled
	}
	return pgerr.New(pgerrcode.InternalError, err.Error()).WithCause(err)
}

// errorResponse is the message for e.
func errorResponse(e *pgerr.Error) *pgproto3.ErrorResponse {
	return &pgproto3.ErrorResponse{
		Severity:            e.Severity,
		SeverityUnlocalized: e.Severity,
		Code:                e.Code,
		Message:             cString(e.Message),
		Detail:              cString(e.Detail),
		Hint:                cString(e.Hint),
		Position:            int32(min(e.Position, math.MaxInt32)),
		Where:               cString(e.Where),
	}
}

// noticeResponse is the message for a notice or warning.
func noticeResponse(e *pgerr.Error) *pgproto3.NoticeResponse {
	n := pgproto3.NoticeResponse(*errorResponse(e))
	if e.Severity == pgerr.SeverityError { // made by New
		n.Severity, n.SeverityUnlocalized = pgerr.SeverityNotice, pgerr.SeverityNotice
	}
	return &n
}

// cString makes text safe as a protocol string, which ends at its first NUL: data quoted in a message may
// hold one.
func cString(text string) string {
	return strings.ReplaceAll(text, "\x00", `\000`)
}
