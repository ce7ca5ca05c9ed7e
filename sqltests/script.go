package sqltests

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// Script is one parsed .test file.
type Script struct {
	Path    string
	Name    string // what the `# name:` line says, normally the path
	About   string // what the file proves, in one sentence
	Only    string // the one kind of server the file is for, "" for all
	OnlyWhy string // why it must differ elsewhere
	Mode    string // the one protocol the file runs in ("simple", "extended"), "" for both
	records []*record
	lines   []string // the file as read, for Rewrite
}

// record is one step of a script: a directive with its SQL, its data and what is expected of it.
type record struct {
	line int      // of its first word, 1-based
	kind string   // "statement", "query", "copy", ...
	args []string // the words after the kind
	sql  string   // the lines up to ---- or a blank line
	want []string // the lines after ----, nil when there is no ----
	body []*record

	wantAt [2]int   // the half-open range of lines, 0-based, that holds want
	values []string // the values a loop runs over; args[0] is its variable

	only, skip string   // kinds of server
	fails      string   // the issue because of which this record fails today
	binds      []string // `bind` lines, one per parameter
	columns    string   // what RowDescription should say
}

// kinds says of each directive whether SQL follows on the next lines.
var kinds = map[string]bool{
	"statement": true, "query": true, "copy": true, "let": true,
	"connection": false, "disconnect": false, "status": false,
	"repeat": false, "loop": false, "foreach": false,
}

// ParseFile reads a .test file.
func ParseFile(path string) (*Script, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return Parse(path, string(data))
}

// Parse reads the text of a .test file; path serves error messages and the default name.
func Parse(path, text string) (*Script, error) {
	p := &parser{script: &Script{Path: path}}
	scanner := bufio.NewScanner(strings.NewReader(text))
	scanner.Buffer(nil, 16<<20) // a COPY block may hold a long line
	for scanner.Scan() {
		p.script.lines = append(p.script.lines, scanner.Text())
	}
	if err := scanner.Err(); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	records, err := p.block(false)
	if err != nil {
		return nil, err
	}
	p.script.records = records
	if p.script.About == "" {
		return nil, p.errorf("a file says what it proves: `# about: …` is missing")
	}
	return p.script, nil
}

// parser walks the lines of one file. prefix gathers what the next record is to carry (onlyif, bind, …).
type parser struct {
	script *Script
	at     int // index of the next line
	prefix record
}

// errorf blames the line that was read last.
func (p *parser) errorf(format string, args ...any) error {
	return fmt.Errorf("%s:%d: %s", p.script.Path, p.at, fmt.Sprintf(format, args...))
}

// block parses records up to the end of the file, or up to `end` inside a loop.
func (p *parser) block(inLoop bool) ([]*record, error) {
	var records []*record
	for p.at < len(p.script.lines) {
		line := strings.TrimSpace(p.script.lines[p.at])
		p.at++
		switch {
		case line == "":
		case strings.HasPrefix(line, "#"):
			p.header(line)
		case line == "end" && inLoop:
			return records, nil
		default:
			r, err := p.directive(line)
			if err != nil {
				return nil, err
			}
			if r != nil {
				records = append(records, r)
			}
		}
	}
	if inLoop {
		return nil, p.errorf("a loop lacks its `end`")
	}
	return records, nil
}

// header takes the two comments that mean something.
func (p *parser) header(line string) {
	if v, ok := strings.CutPrefix(line, "# name:"); ok {
		p.script.Name = strings.TrimSpace(v)
	}
	if v, ok := strings.CutPrefix(line, "# about:"); ok {
		p.script.About = strings.TrimSpace(v)
	}
}

// directive parses one line that is no comment; nil when it only prepares the next record or sets something of the file.
func (p *parser) directive(line string) (*record, error) {
	word, rest, _ := strings.Cut(line, " ")
	rest = strings.TrimSpace(rest)
	switch word {
	case "skipif":
		p.prefix.skip = rest
	case "onlyif":
		p.prefix.only = rest
	case "bind":
		p.prefix.binds = append(p.prefix.binds, rest)
	case "columns":
		p.prefix.columns = rest
	case "mode":
		p.script.Mode = rest
	case "expect":
		issue, ok := strings.CutPrefix(rest, "fail:")
		if !ok || strings.TrimSpace(issue) == "" {
			return nil, p.errorf("want `expect fail: issue N`")
		}
		p.prefix.fails = strings.TrimSpace(issue)
	case "only":
		kind, why, ok := strings.Cut(rest, ":")
		if !ok || strings.TrimSpace(why) == "" {
			return nil, p.errorf("want `only KIND: why`")
		}
		p.script.Only, p.script.OnlyWhy = kind, strings.TrimSpace(why)
	default:
		return p.record(word, rest)
	}
	return nil, nil
}

// record parses a directive of the kinds table with the lines that belong to it.
func (p *parser) record(kind, rest string) (*record, error) {
	hasSQL, known := kinds[kind]
	if !known {
		return nil, p.errorf("unknown directive %q", kind)
	}
	r := new(record)
	*r, p.prefix = p.prefix, record{}
	r.line, r.kind, r.args = p.at, kind, strings.Fields(rest)
	if kind == "repeat" || kind == "loop" || kind == "foreach" {
		return r, p.loop(r)
	}
	if hasSQL {
		p.sql(r)
		if r.sql == "" {
			return nil, p.errorf("%s has no SQL", kind)
		}
	}
	return r, nil
}

// sql reads the SQL of a record and what is expected of it. Both end at a blank line; a blank line inside of SQL cannot be
// written, and one inside of expected values is written as (blank).
func (p *parser) sql(r *record) {
	var sql []string
	for p.at < len(p.script.lines) {
		line := p.script.lines[p.at]
		if strings.TrimSpace(line) == "" {
			break
		}
		p.at++
		if line == "----" {
			p.want(r)
			break
		}
		sql = append(sql, line)
	}
	r.sql = strings.Join(sql, "\n")
}

// want reads expected lines.
func (p *parser) want(r *record) {
	r.want, r.wantAt[0] = []string{}, p.at
	for p.at < len(p.script.lines) && p.script.lines[p.at] != "" {
		line := p.script.lines[p.at]
		if line == "(blank)" {
			line = ""
		}
		r.want = append(r.want, line)
		p.at++
	}
	r.wantAt[1] = p.at
}

// loop parses `repeat N`, `loop VAR FROM TO` (TO excluded) and `foreach VAR VALUE…`, each up to its `end`.
func (p *parser) loop(r *record) error {
	from, to := 0, 0
	var err error
	switch {
	case r.kind == "foreach" && len(r.args) > 1:
		r.values = r.args[1:]
	case r.kind == "repeat" && len(r.args) == 1:
		to, err = strconv.Atoi(r.args[0])
		r.args = []string{"i"}
	case r.kind == "loop" && len(r.args) == 3:
		if from, err = strconv.Atoi(r.args[1]); err == nil {
			to, err = strconv.Atoi(r.args[2])
		}
	default:
		return p.errorf("want `repeat N`, `loop VAR FROM TO` or `foreach VAR VALUE…`")
	}
	if err != nil {
		return p.errorf("%s: %v", r.kind, err)
	}
	for i := from; i < to; i++ {
		r.values = append(r.values, strconv.Itoa(i))
	}
	r.body, err = p.block(true)
	return err
}
