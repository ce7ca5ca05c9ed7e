package translate

import (
	"strconv"
	"strings"

	pg_query "github.com/pganalyze/pg_query_go/v6"
)

// NameColumns puts PostgreSQL's names in the place of DuckDB's for columns that the statement leaves unnamed: count(*)
// is count, 1 + 1 is ?column? (PostgreSQL's FigureColname). Where the text is DuckDB's own SQL nothing changes. It costs
// a parse, some ten microseconds, so it belongs where a statement is prepared.
func (s *Stmt) NameColumns(names []string) {
	if s.Kind != KindQuery && s.Copy == nil {
		return
	}
	tree, err := pg_query.Parse(s.Text)
	if err != nil || len(tree.Stmts) != 1 {
		return
	}
	targets, values := targetsOf(tree.Stmts[0].Stmt)
	if values > 0 && values == len(names) { // VALUES
		for i := range names {
			names[i] = "column" + strconv.Itoa(i+1)
		}
		return
	}
	first, last := len(targets), -1 // of the stars
	for i, t := range targets {
		if isStar(t.GetResTarget().GetVal()) {
			first, last = min(first, i), i
		}
	}
	if last < 0 && len(targets) != len(names) || last >= 0 && len(names) < len(targets)-1-(last-first) {
		return
	}
	for i := range first {
		names[i] = targetName(targets[i].GetResTarget())
	}
	for i := last + 1; last >= 0 && i < len(targets); i++ {
		names[len(names)-len(targets)+i] = targetName(targets[i].GetResTarget())
	}
}

// targetsOf finds the list that names a statement's columns, or how many there are in VALUES.
func targetsOf(n *pg_query.Node) (targets []*pg_query.Node, values int) {
	switch {
	case n.GetCopyStmt() != nil:
		return targetsOf(n.GetCopyStmt().Query)
	case n.GetInsertStmt() != nil:
		return n.GetInsertStmt().ReturningList, 0
	case n.GetUpdateStmt() != nil:
		return n.GetUpdateStmt().ReturningList, 0
	case n.GetDeleteStmt() != nil:
		return n.GetDeleteStmt().ReturningList, 0
	}
	sel := n.GetSelectStmt()
	for sel.GetLarg() != nil { // a set operation is named by its first query
		sel = sel.GetLarg()
	}
	if lists := sel.GetValuesLists(); len(lists) > 0 {
		return nil, len(lists[0].GetList().GetItems())
	}
	return sel.GetTargetList(), 0
}

// isStar reports whether an expression is * or t.*.
func isStar(n *pg_query.Node) bool {
	fields := n.GetColumnRef().GetFields()
	if in := n.GetAIndirection(); in != nil {
		fields = in.Indirection
	}
	return len(fields) > 0 && fields[len(fields)-1].GetAStar() != nil
}

// targetName is the name of one column.
func targetName(t *pg_query.ResTarget) string {
	if t.GetName() != "" {
		return t.Name
	}
	if name, _ := figureName(t.GetVal()); name != "" {
		return name
	}
	return "?column?"
}

// figureName is what an expression suggests as a name. A weak one (a type's, or case) gives way to that of an inner
// expression.
func figureName(n *pg_query.Node) (name string, strong bool) {
	switch {
	case n.GetColumnRef() != nil:
		return lastString(n.GetColumnRef().Fields), true
	case n.GetFuncCall() != nil:
		return lastString(n.GetFuncCall().Funcname), true
	case n.GetAIndirection() != nil:
		if name := lastString(n.GetAIndirection().Indirection); name != "" {
			return name, true
		}
		return figureName(n.GetAIndirection().Arg)
	case n.GetTypeCast() != nil:
		if name, strong := figureName(n.GetTypeCast().Arg); strong {
			return name, true
		}
		return lastString(n.GetTypeCast().TypeName.GetNames()), false
	case n.GetCollateClause() != nil:
		return figureName(n.GetCollateClause().Arg)
	case n.GetCaseExpr() != nil:
		if name, strong := figureName(n.GetCaseExpr().Defresult); strong {
			return name, true
		}
		return "case", false
	case n.GetSubLink() != nil:
		return sublinkName(n.GetSubLink())
	case n.GetSqlvalueFunction() != nil:
		return valueFunctions[n.GetSqlvalueFunction().Op], true
	case n.GetMinMaxExpr() != nil:
		return map[pg_query.MinMaxOp]string{pg_query.MinMaxOp_IS_GREATEST: "greatest", pg_query.MinMaxOp_IS_LEAST: "least"}[n.GetMinMaxExpr().Op], true
	case n.GetAExpr() != nil && n.GetAExpr().Kind == pg_query.A_Expr_Kind_AEXPR_NULLIF:
		return "nullif", true
	case n.GetCoalesceExpr() != nil:
		return "coalesce", true
	case n.GetAArrayExpr() != nil:
		return "array", true
	case n.GetRowExpr() != nil:
		return "row", true
	case n.GetGroupingFunc() != nil:
		return "grouping", true
	}
	return "", false
}

// sublinkName names a query in brackets.
func sublinkName(l *pg_query.SubLink) (string, bool) {
	switch l.SubLinkType {
	case pg_query.SubLinkType_EXISTS_SUBLINK:
		return "exists", true
	case pg_query.SubLinkType_ARRAY_SUBLINK:
		return "array", true
	case pg_query.SubLinkType_EXPR_SUBLINK:
		if targets, _ := targetsOf(l.Subselect); len(targets) > 0 {
			t := targets[0].GetResTarget()
			if t.GetName() != "" {
				return t.Name, true
			}
			return figureName(t.GetVal())
		}
	}
	return "", false
}

// valueFunctions are functions without brackets.
var valueFunctions = map[pg_query.SQLValueFunctionOp]string{
	pg_query.SQLValueFunctionOp_SVFOP_CURRENT_DATE: "current_date", pg_query.SQLValueFunctionOp_SVFOP_CURRENT_TIME: "current_time",
	pg_query.SQLValueFunctionOp_SVFOP_CURRENT_TIME_N: "current_time", pg_query.SQLValueFunctionOp_SVFOP_CURRENT_TIMESTAMP: "current_timestamp",
	pg_query.SQLValueFunctionOp_SVFOP_CURRENT_TIMESTAMP_N: "current_timestamp", pg_query.SQLValueFunctionOp_SVFOP_LOCALTIME: "localtime",
	pg_query.SQLValueFunctionOp_SVFOP_LOCALTIME_N: "localtime", pg_query.SQLValueFunctionOp_SVFOP_LOCALTIMESTAMP: "localtimestamp",
	pg_query.SQLValueFunctionOp_SVFOP_LOCALTIMESTAMP_N: "localtimestamp", pg_query.SQLValueFunctionOp_SVFOP_CURRENT_ROLE: "current_role",
	pg_query.SQLValueFunctionOp_SVFOP_CURRENT_USER: "current_user", pg_query.SQLValueFunctionOp_SVFOP_USER: "user",
	pg_query.SQLValueFunctionOp_SVFOP_SESSION_USER: "session_user", pg_query.SQLValueFunctionOp_SVFOP_CURRENT_CATALOG: "current_catalog",
	pg_query.SQLValueFunctionOp_SVFOP_CURRENT_SCHEMA: "current_schema",
}

// lastString is the last name in a list, if it ends in one.
func lastString(list []*pg_query.Node) string {
	for i := len(list) - 1; i >= 0; i-- {
		if s := list[i].GetString_().GetSval(); s != "" {
			return strings.ToValidUTF8(s, "")
		}
	}
	return ""
}
