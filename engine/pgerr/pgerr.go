package pgerr

import (
	"errors"
	"fmt"
)

// Severities as PostgreSQL sends them in the fields S and V.
const (
	SeverityError   = "ERROR"
	SeverityFatal   = "FATAL"
	SeverityPanic   = "PANIC"
	SeverityWarning = "WARNING"
	SeverityNotice  = "NOTICE"
	SeverityInfo    = "INFO"
)

// Error is one failure, or one notice, in the client's terms.
type Error struct {
	Severity string // one of the Severity constants; New sets ERROR
	Code     string // SQLSTATE, five characters
	Message  string
	Detail   string
	Hint     string
	Position int    // in the client's text, counted in characters from 1; 0 = none
	Where    string // context, such as `COPY t, line 3`
	Cause    error  // for the log, never for the client
}

// New makes an ERROR with a code of pgerrcode and a finished message.
func New(code, message string) *Error {
	return &Error{Severity: SeverityError, Code: code, Message: message}
}

// Newf is New with a format. An error among the arguments does not become the cause; WithCause does that.
func Newf(code, format string, args ...any) *Error {
	return New(code, fmt.Sprintf(format, args...))
}

// Notice makes a message that does not fail the statement: severity is NOTICE, WARNING or INFO.
func Notice(severity, code, message string) *Error {
	return &Error{Severity: severity, Code: code, Message: message}
}

// Fatal makes an error after which the connection ends.
func Fatal(code, message string) *Error {
	return &Error{Severity: SeverityFatal, Code: code, Message: message}
}

// Error gives the text for logs, as PostgreSQL's tools print it.
func (e *Error) Error() string {
	text := e.Severity + ": " + e.Message + " (SQLSTATE " + e.Code + ")"
	if e.Cause != nil {
		text += ": " + e.Cause.Error()
	}
	return text
}

// Unwrap gives the cause, so that errors.Is finds a cancelled context behind a 57014.
func (e *Error) Unwrap() error { return e.Cause }

// SQLState gives the code under the name that pgconn's errors use, so that callers can ask either for it.
func (e *Error) SQLState() string { return e.Code }

// The With functions fill one field and return the same error, to be chained after New.

// WithSeverity sets the severity.
func (e *Error) WithSeverity(severity string) *Error { e.Severity = severity; return e }

// WithDetail sets the detail: a sentence that says more about this failure.
func (e *Error) WithDetail(detail string) *Error { e.Detail = detail; return e }

// WithHint sets the hint: a sentence that says what to do.
func (e *Error) WithHint(hint string) *Error { e.Hint = hint; return e }

// WithPosition sets the position: characters in the client's text, from 1.
func (e *Error) WithPosition(position int) *Error { e.Position = position; return e }

// WithWhere sets the context.
func (e *Error) WithWhere(where string) *Error { e.Where = where; return e }

// WithCause keeps the error below for the log.
func (e *Error) WithCause(cause error) *Error { e.Cause = cause; return e }

// Code gives the SQLSTATE of the first error in err's chain that has one, or "".
func Code(err error) string {
	var state interface{ SQLState() string }
	if errors.As(err, &state) {
		return state.SQLState()
	}
	return ""
}

// From finds the *Error in err's chain; nil when there is none.
func From(err error) *Error {
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	return nil
}
