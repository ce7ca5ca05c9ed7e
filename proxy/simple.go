package proxy

import (
	"context"
	"errors"
	"io"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgerrcode"
	"github.com/jackc/pgx/v5/pgproto3"

	"sluice/engine"
	"sluice/engine/pgcodec"
	"sluice/engine/pgerr"
)

// query runs a Query message. It ends with ReadyForQuery whatever happens, since no Sync will come.
func (s *session) query(ctx context.Context, m *pgproto3.Query) (state, error) {
	s.forgetPortal("") // the manual: a simple Query destroys the unnamed statement and portal
	s.closeUnnamed()
	if err := s.script(ctx, m.String); err != nil {
		if over, err := s.report(err); over {
			return nil, err
		}
	}
	return s.sync(ctx)
}

// refuseQuery answers a message that is not followed by a Sync and that the engine never saw.
func (s *session) refuseQuery(ctx context.Context, err error) (state, error) {
	if over, err := s.report(err); over {
		return nil, err
	}
	return s.sync(ctx)
}

// script runs the statements of one text until one fails. Several are one transaction, unless the text
// itself says otherwise; the last one's completion waits for the commit.
func (s *session) script(ctx context.Context, sql string) error {
	queries, err := s.split(sql)
	if err != nil {
		return err
	}
	if len(queries) == 0 {
		s.out.send(&pgproto3.EmptyQueryResponse{})
		return nil
	}
	mode := engine.Auto
	if len(queries) > 1 {
		mode = engine.Implicit
		s.block = true
	}
	for i, q := range queries {
		if err := s.runQuery(ctx, q, mode, i == len(queries)-1); err != nil {
			return err
		}
	}
	return nil
}

// split has the engine find the statements of a text. A text that is not UTF-8 is none.
func (s *session) split(sql string) ([]engine.Query, error) {
	if err := checkUTF8(sql); err != nil {
		return nil, err
	}
	return s.engine.Parse(sql)
}

// runQuery runs one statement of a Query message and sends all it answers.
func (s *session) runQuery(ctx context.Context, q engine.Query, mode engine.Mode, last bool) error {
	w := s.begin(newWork(ctx))
	defer s.end(w, true)
	before := s.engine.TxStatus()
	st, err := s.engine.Prepare(w.ctx, q, nil)
	if err != nil {
		return err
	}
	defer st.Close()
	tag, err := s.runStatement(w, st, mode)
	if err != nil {
		return err
	}
	s.complete(tag, mode == engine.Implicit && last)
	s.afterStatement(before)
	return nil
}

// runStatement runs a statement and sends its rows or copies its data. Only a FETCH from a BINARY cursor is binary.
func (s *session) runStatement(w *work, st statement, mode engine.Mode) (tag string, err error) {
	if c := st.Copy(); c != nil {
		return s.copy(w, st, c, nil, mode)
	}
	r, err := st.Run(w.ctx, nil, mode)
	if err != nil {
		return "", err
	}
	var formats []int16
	if r.Binary() {
		formats = []int16{pgcodec.FormatBinary}
	}
	c := s.newCursor(r, formats)
	defer func() { err = errors.Join(err, c.close()) }()
	if c.columns != nil {
		s.out.send(rowDescription(c.columns, formats))
	}
	rows, err := s.sendRows(w.ctx, c, 0)
	if err != nil {
		return "", err
	}
	return r.Tag(rows), nil
}

// complete sends a command tag, held back while its implicit transaction is open. The log line has no
// text: statements may hold secrets.
func (s *session) complete(tag string, hold bool) {
	s.log.Debug().Str("tag", tag).Dur("duration", time.Since(s.work.since)).Msg("statement")
	s.sendNotices()
	if hold {
		s.out.hold()
	}
	s.out.send(&pgproto3.CommandComplete{CommandTag: []byte(tag)})
}

// checkUTF8 refuses text that is not valid UTF-8 as PostgreSQL does.
func checkUTF8(text string) error {
	if utf8.ValidString(text) {
		return nil
	}
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		if r == utf8.RuneError && size == 1 {
			return pgerr.Newf(pgerrcode.CharacterNotInRepertoire,
				"invalid byte sequence for encoding \"UTF8\": 0x%02x", text[i])
		}
		i += size
	}
	return io.ErrUnexpectedEOF
}
