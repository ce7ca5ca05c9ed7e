package engine

import "time"

// IdleTimeouts are the settings idle_session_timeout and idle_in_transaction_session_timeout, which whoever waits for the
// client has to enforce; 0 is never.
func (s *Session) IdleTimeouts() (session, inTransaction time.Duration) {
	return s.settings.duration("idle_session_timeout"), s.settings.duration("idle_in_transaction_session_timeout")
}

// duration reads a setting that checkDuration has checked.
func (st *settingsState) duration(name string) time.Duration {
	value := st.value(name)
	if value == "0" {
		return 0
	}
	d, err := parseDuration(value)
	if err != nil {
		return 0 // cannot be
	}
	return d
}
