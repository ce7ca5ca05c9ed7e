package translate

import (
	"errors"
	"unicode/utf8"

	"github.com/jackc/pgerrcode"
	pg_query "github.com/pganalyze/pg_query_go/v6"
	"github.com/pganalyze/pg_query_go/v6/parser"

	"sluice/engine/pgerr"
)

// parse reads a statement with PostgreSQL's grammar. The error is PostgreSQL's own, with its position in the message.
func parse(s *Stmt, text string) (*pg_query.Node, *pgerr.Error) {
	tree, err := pg_query.Parse(text)
	if err == nil && len(tree.Stmts) == 1 {
		return tree.Stmts[0].Stmt, nil
	}
	out := pgerr.New(pgerrcode.SyntaxError, "syntax error")
	var syntax *parser.Error
	if errors.As(err, &syntax) {
		out.Message = syntax.Message
		if syntax.Cursorpos > 0 { // characters from 1, in the statement
			out.Position = utf8.RuneCountInString(s.message[:s.Offset]) + syntax.Cursorpos
		}
	}
	return nil, out
}

// parseOrRefuse is parse for statements that are nothing but PostgreSQL's. nil: the statement is refused.
func parseOrRefuse(s *Stmt, text string) *pg_query.Node {
	node, failure := parse(s, text)
	if failure != nil {
		refuse(s, failure)
		return nil
	}
	return node
}

// txOps are PostgreSQL's transaction statements that are run.
var txOps = map[pg_query.TransactionStmtKind]struct {
	op  TxOp
	tag string
}{
	pg_query.TransactionStmtKind_TRANS_STMT_BEGIN:    {TxBegin, "BEGIN"},
	pg_query.TransactionStmtKind_TRANS_STMT_START:    {TxBegin, "START TRANSACTION"},
	pg_query.TransactionStmtKind_TRANS_STMT_COMMIT:   {TxCommit, "COMMIT"},
	pg_query.TransactionStmtKind_TRANS_STMT_ROLLBACK: {TxRollback, "ROLLBACK"},
}

// transaction reads BEGIN and its like.
func transaction(r *rewrite, s *Stmt) {
	node := parseOrRefuse(s, r.text)
	if node == nil {
		return
	}
	stmt := node.GetTransactionStmt()
	if stmt == nil {
		refuse(s, pgerr.New(pgerrcode.FeatureNotSupported, "this transaction statement is not supported"))
		return
	}
	op, known := txOps[stmt.Kind]
	if !known {
		message := "savepoints are not supported"
		if r.word(1) == "prepared" {
			message = "prepared transactions are not supported"
		}
		refuse(s, pgerr.New(pgerrcode.FeatureNotSupported, message))
		return
	}
	s.Tx, s.Tag = &Tx{Op: op.op, Chain: stmt.Chain}, op.tag
	s.Tx.modes(stmt.Options)
}

// modes reads ISOLATION LEVEL, READ ONLY and DEFERRABLE.
func (tx *Tx) modes(options []*pg_query.Node) {
	for _, o := range options {
		e := o.GetDefElem()
		value := constant(e.GetArg())
		switch e.GetDefname() {
		case "transaction_isolation":
			tx.Isolation = value
		case "transaction_read_only":
			tx.ReadOnly, tx.ReadWrite = value != "0", value == "0"
		case "transaction_deferrable":
			tx.Deferrable, tx.NotDeferrable = value != "0", value == "0"
		}
	}
}
