package engine

import (
	"context"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/jackc/pgerrcode"

	"sluice/engine/pgerr"
	"sluice/engine/translate"
)

// Mode says how a statement stands to transactions when the client has not opened one.
type Mode uint8

const (
	// Auto runs the statement alone: it has committed before its last row is reported.
	Auto Mode = iota
	// Implicit runs it as part of an implicit block (several statements of one Query message, or a pipeline up to
	// Sync; manual, 55.2.2.1 "Multiple Statements In A Simple Query"), which Session.Sync ends.
	Implicit
)

// txState is where a session stands. DuckDB has a transaction open unless kind is txNone or failed is set: a failed
// transaction is rolled back there at once, and only remembered here until the client ends it.
//
// Every statement is bound in the transaction that it runs in, because a plan over DuckLake holds on to the transaction
// that it was bound in: one that had ended made DuckDB read freed memory under 50 sessions creating tables.
type txState struct {
	kind     txKind
	failed   bool
	writes   bool // a statement that may change the lake ran in it
	changes  bool // a statement that may change anything, be it a temporary table, ran in it
	readOnly bool
}

type txKind uint8

const (
	txNone     txKind = iota
	txBinding         // open to bind a statement; the statement's run takes it over, Sync rolls it back
	txImplicit        // of one statement, or of an implicit block
	txExplicit        // the client's
)

// idle reports whether a statement that runs now needs a transaction of its own.
func (s *Session) idle() bool { return s.tx.kind <= txBinding }

// TxStatus is ReadyForQuery's status byte: 'I' idle, 'T' in a transaction block, 'E' in a failed one.
func (s *Session) TxStatus() byte {
	switch {
	case s.tx.kind != txExplicit:
		return 'I'
	case s.tx.failed:
		return 'E'
	}
	return 'T'
}

// errAborted is PostgreSQL's answer to whatever is asked of a failed transaction.
func errAborted() *pgerr.Error {
	return pgerr.New(pgerrcode.InFailedSQLTransaction,
		"current transaction is aborted, commands ignored until end of transaction block")
}

// begin opens a transaction in DuckDB, or takes over the one that a statement was just bound in.
func (s *Session) begin(ctx context.Context, kind txKind) error {
	if s.tx.kind == txBinding {
		s.tx.kind = kind
		return nil
	}
	if err := s.settleActive(ctx); err != nil {
		return err
	}
	if err := s.conn.exec(ctx, "BEGIN TRANSACTION"); err != nil {
		return s.noteLost(err)
	}
	s.settings.begin()
	s.serial++
	s.tx = txState{kind: kind, readOnly: s.readOnlyDefault()}
	s.settings.set("transaction_read_only", onOff(s.tx.readOnly), true)
	return nil
}

// readOnlyDefault is what a new transaction is without words of its own.
func (s *Session) readOnlyDefault() bool {
	return s.in.readOnly || s.settings.value("default_transaction_read_only") == "on"
}

// join makes sure that there is a transaction for a statement to run in: the one that is open, else an implicit one.
func (s *Session) join(ctx context.Context) error {
	if !s.idle() {
		return nil
	}
	return s.begin(ctx, txImplicit)
}

// commit ends the transaction in DuckDB; one that wrote queues for the lake. The rows of cursors WITH HOLD are taken out
// of it first. On an error nothing of it remains but where the connection broke while committing, which nobody can know.
func (s *Session) commit(ctx context.Context) error {
	if err := s.holdCursors(ctx); err != nil {
		s.rollback()
		return err
	}
	if s.active != nil {
		s.active.discard(errTxOver())
	}
	if s.tx.writes {
		if err := s.engine.enterCommit(ctx); err != nil {
			s.rollback()
			return err
		}
		defer s.engine.leaveCommit()
	}
	err := s.conn.exec(ctx, "COMMIT")
	if err != nil && !s.tx.changes && (isRecovery(err) || isLost(err)) {
		s.log.Debug().Err(err).Msg("a transaction that only read has lost its snapshot when it had read all")
		err = nil
	}
	if err != nil {
		s.rollback()
		return s.noteLost(err)
	}
	s.endTx(true)
	return nil
}

// rollback ends the transaction in DuckDB, whatever state it is in. It is not cancelled with the statement: what was
// written has to go. An error means that DuckDB had already rolled back.
func (s *Session) rollback() {
	s.dropRows()
	if s.tx.kind != txNone && !s.tx.failed {
		s.rollbackDuck()
	}
	s.endTx(false)
}

// rollbackDuck says ROLLBACK to DuckDB.
func (s *Session) rollbackDuck() {
	if err := s.conn.exec(context.Background(), "ROLLBACK"); err != nil {
		s.log.Debug().Err(err).Msg("rollback found no transaction")
	}
}

// endTx forgets the transaction, ends its portals and puts the settings where its end leaves them.
func (s *Session) endTx(committed bool) {
	s.tx = txState{}
	s.endPortals(committed)
	s.settings.end(committed)
	if err := s.applySettings(context.Background()); err != nil {
		s.log.Warn().Err(s.noteLost(err)).Msg("settings of the session could not be put back")
	}
}

// Fail tells the session that a statement failed, also where the engine did not see it (a protocol error). The
// transaction is rolled back in DuckDB; an explicit block stays failed until the client ends it.
func (s *Session) Fail() {
	s.dropRows()
	if s.tx.kind == txNone || s.tx.failed {
		return
	}
	s.rollbackDuck()
	s.tx.failed = true
	if s.tx.kind != txExplicit {
		s.endTx(false)
	}
}

// Sync ends an implicit block: it commits. An explicit one is left alone. The error is the commit's failure.
func (s *Session) Sync(ctx context.Context) error {
	if s.tx.kind == txBinding {
		s.rollback()
	}
	if s.tx.kind != txImplicit {
		return nil
	}
	x := s.newExecution()
	defer x.end()
	defer x.enter(ctx)()
	if err := s.commit(x.ctx); err != nil {
		return s.pgError(x.ctx, err, nil)
	}
	return nil
}

// transact answers BEGIN, COMMIT, ROLLBACK and SET TRANSACTION, and returns the command tag.
func (s *Session) transact(ctx context.Context, stmt *translate.Stmt) (string, error) {
	tx := stmt.Tx
	switch tx.Op {
	case translate.TxBegin:
		return stmt.Tag, s.beginExplicit(ctx, tx)
	case translate.TxCommit:
		return s.commitExplicit(ctx, tx)
	case translate.TxRollback:
		if s.tx.kind != txExplicit {
			s.warnNoTx()
		}
		s.rollback()
		return s.chain(ctx, tx, "ROLLBACK")
	case translate.TxSetTransaction:
		if s.tx.kind != txExplicit {
			s.notice(pgerr.New(pgerrcode.NoActiveSQLTransaction, "SET TRANSACTION can only be used in transaction blocks").WithSeverity("WARNING"))
			return "SET", nil
		}
		return "SET", s.characteristics(tx, true)
	case translate.TxSetCharacteristics:
		return "SET", s.characteristics(tx, false)
	}
	return "", pgerr.New(pgerrcode.FeatureNotSupported, "savepoints are not supported")
}

// beginExplicit opens a block, or turns an implicit one into it as PostgreSQL does.
func (s *Session) beginExplicit(ctx context.Context, tx *translate.Tx) error {
	switch s.tx.kind {
	case txExplicit:
		s.notice(pgerr.New(pgerrcode.ActiveSQLTransaction, "there is already a transaction in progress").WithSeverity("WARNING"))
	case txImplicit:
		s.tx.kind = txExplicit
	default:
		if err := s.begin(ctx, txExplicit); err != nil {
			return err
		}
	}
	if err := s.characteristics(tx, true); err != nil {
		s.rollback()
		return err
	}
	return nil
}

// characteristics applies the modes of BEGIN and SET TRANSACTION to this transaction, or to those that follow.
func (s *Session) characteristics(tx *translate.Tx, local bool) error {
	prefix := "default_transaction_"
	if local {
		prefix = "transaction_"
	}
	if tx.Isolation != "" {
		level, err := checkSetting(prefix+"isolation", []string{tx.Isolation})
		if err != nil {
			return pgerr.Newf(pgerrcode.FeatureNotSupported, "transaction isolation level %q is not supported", tx.Isolation).
				WithDetail("Transactions are snapshots, that is at most repeatable read.")
		}
		s.settings.set(prefix+"isolation", level, local)
	}
	if tx.ReadWrite && s.in.readOnly && local {
		return pgerr.New(pgerrcode.FeatureNotSupported, "cannot set transaction read-write mode during recovery")
	}
	if tx.ReadOnly || tx.ReadWrite {
		s.settings.set(prefix+"read_only", onOff(tx.ReadOnly), local)
		if local {
			s.tx.readOnly = tx.ReadOnly
		}
	}
	return nil
}

// commitExplicit commits a block; a failed one is rolled back and says so.
func (s *Session) commitExplicit(ctx context.Context, tx *translate.Tx) (string, error) {
	switch {
	case s.idle():
		s.warnNoTx()
		return "COMMIT", nil
	case s.tx.failed:
		s.rollback()
		return s.chain(ctx, tx, "ROLLBACK")
	}
	if s.tx.kind == txImplicit {
		s.warnNoTx()
	}
	if err := s.commit(ctx); err != nil {
		return "", err
	}
	return s.chain(ctx, tx, "COMMIT")
}

// chain opens the next transaction after COMMIT AND CHAIN.
func (s *Session) chain(ctx context.Context, tx *translate.Tx, tag string) (string, error) {
	if !tx.Chain {
		return tag, nil
	}
	return tag, s.begin(ctx, txExplicit)
}

// warnNoTx is PostgreSQL's warning for an end without a beginning.
func (s *Session) warnNoTx() {
	s.notice(pgerr.New(pgerrcode.NoActiveSQLTransaction, "there is no transaction in progress").WithSeverity("WARNING"))
}

// enterCommit waits for the lake, first come, first served.
func (e *Engine) enterCommit(ctx context.Context) error {
	select {
	case <-e.commits:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// leaveCommit lets the next one commit.
func (e *Engine) leaveCommit() { e.commits <- struct{}{} }

// alone runs work, which writes, as a transaction of its own and repeats the whole of it on a conflict with another process
// (decision 8). work must not show the client anything.
func (s *Session) alone(ctx context.Context, work func() error) error {
	again := func(err error) bool { return isConflict(err) && !isLost(err) }
	return s.repeat(ctx, again, func() error { return s.once(ctx, work) })
}

// overRecovery runs a read, and repeats it while a standby cancels it to get on with its recovery, which may show as no
// more than a connection that breaks. Only what stands alone is repeated: in a client's transaction other statements have
// seen that snapshot. read must not have shown the client anything when it fails, and must find its way from no
// transaction.
func (s *Session) overRecovery(ctx context.Context, read func() error) error {
	if !s.in.readOnly || !s.idle() {
		return read()
	}
	again := func(err error) bool {
		if isRecovery(err) || isCut(err) {
			s.rollback()
			return true
		}
		return false
	}
	return s.repeat(ctx, again, read)
}

// repeat runs try until it succeeds, fails for good or has used up the budget, whose last error it returns.
func (s *Session) repeat(ctx context.Context, again func(error) bool, try func() error) error {
	retry := s.engine.cfg.Retry
	_, err := backoff.Retry(ctx, func() (struct{}, error) {
		err := try()
		if err != nil && !again(err) {
			err = backoff.Permanent(err)
		}
		return struct{}{}, err
	}, backoff.WithMaxTries(retry.Max+1), backoff.WithMaxElapsedTime(0), backoff.WithBackOff(&backoff.ExponentialBackOff{
		InitialInterval:     retry.Wait,
		MaxInterval:         retry.WaitMax,
		Multiplier:          2,
		RandomizationFactor: retry.JitterFrac,
	}), backoff.WithNotify(func(err error, wait time.Duration) {
		s.log.Debug().Dur("wait", wait).Err(err).Msg("transaction is repeated after a conflict")
	}))
	return err
}

// once is one try of alone.
func (s *Session) once(ctx context.Context, work func() error) error {
	if err := s.begin(ctx, txImplicit); err != nil {
		return err
	}
	s.tx.writes, s.tx.changes = true, true
	if err := work(); err != nil {
		s.rollback()
		return err
	}
	return s.commit(ctx)
}

// noteLost marks the instance when err says that DuckDB has invalidated it, so that new sessions get another.
func (s *Session) noteLost(err error) error {
	if isInvalidated(err) {
		s.in.lost.Store(true)
	}
	return err
}
