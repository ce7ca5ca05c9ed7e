package sqltests

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
)

// WireScript is one parsed wire/<topic>/<case>.txt: messages to send, and what has to come back.
type WireScript struct {
	Path    string
	Name    string // what the `# name:` line says
	Rule    string // the manual's rule that the script proves, its section first
	Only    string // the one kind of server the script is for, "" for all
	OnlyWhy string // why it must differ elsewhere

	fails    string      // the issue because of which some block fails on Sluice today
	defaults wireOptions // what every block starts from
	blocks   []*wireBlock
	lines    []string // the file as read, for Rewrite
}

// wireBlock is one paragraph: lines to carry out, then answers. Without answers nothing is read.
type wireBlock struct {
	wireOptions
	line  int // of its first line, 1-based
	sends []wireSend
	wants []*wireWant
}

// wireSend is a line to carry out: a message, or something done to a connection.
type wireSend struct {
	line       int
	word, rest string
}

// wireWant is the answers below one ----; which of a block's wants counts depends on the server.
type wireWant struct {
	on    string // "" for the one that all others share, else a kind of server
	since int    // the major version of PostgreSQL from which on it counts
	why   string // why this kind must differ
	lines []string
	at    [2]int // the half-open range of lines, 0-based, that holds them
}

// wireOptions say how a block's answers are read and shown.
type wireOptions struct {
	until    string // the name of the last answer, "closed" or "quiet"; "" is as many ReadyForQuery as were asked for
	count    int    // how many of it
	tally    bool   // answers are counted instead of shown
	messages bool   // errors and notices are shown with their texts
	hide     []string
	needs    int    // the major version of PostgreSQL that can do it
	fails    string // the issue because of which the block fails on Sluice today
}

// ParseWireFile reads a wire script.
func ParseWireFile(path string) (*WireScript, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return ParseWire(path, string(data))
}

// ParseWire reads the text of a wire script; path serves error messages.
func ParseWire(path, text string) (*WireScript, error) {
	p := &wireParser{script: &WireScript{Path: path, lines: strings.Split(strings.TrimRight(text, "\n"), "\n")}}
	lines := p.script.lines
	for from := 0; from < len(lines); {
		to := from
		for to < len(lines) && strings.TrimSpace(lines[to]) != "" {
			to++
		}
		if err := p.paragraph(from, to); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", path, p.line, err)
		}
		from = to + 1
	}
	if p.script.Rule == "" {
		return nil, fmt.Errorf("%s: a script names the rule that it proves: `# rule: …` is missing", path)
	}
	return p.script, nil
}

// wireParser walks the paragraphs of one file.
type wireParser struct {
	script *WireScript
	block  *wireBlock
	line   int // 1-based, for errors
	loop   int // where in the block's sends a `repeat` began
	times  int // how often it repeats, 0 outside of one
}

// paragraph parses the lines between two blank ones. The first, which sends nothing, speaks for the whole script.
func (p *wireParser) paragraph(from, to int) error {
	if from == to {
		return nil
	}
	p.block = &wireBlock{line: from + 1, wireOptions: p.script.defaults}
	for at := from; at < to; at++ {
		p.line = at + 1
		if strings.HasPrefix(p.script.lines[at], "----") {
			return p.answers(at, to)
		}
		if err := p.request(p.script.lines[at]); err != nil {
			return err
		}
	}
	return p.add()
}

// add ends a block, or takes the head of the file.
func (p *wireParser) add() error {
	switch b := p.block; {
	case p.times > 0:
		return fmt.Errorf("a repeat lacks its `end`")
	case len(b.sends) > 0 || b.wants != nil:
		p.script.blocks = append(p.script.blocks, b)
	case len(p.script.blocks) == 0:
		p.script.fails, b.fails = b.fails, ""
		p.script.defaults = b.wireOptions
	}
	return nil
}

// request parses a line above the answers.
func (p *wireParser) request(line string) error {
	b := p.block
	switch {
	case strings.HasPrefix(line, "#"):
		p.comment(line)
		return nil
	case line[0] == ' ' || line[0] == '\t':
		if len(b.sends) == 0 {
			return fmt.Errorf("an indented line continues the one before it, and there is none")
		}
		last := &b.sends[len(b.sends)-1]
		last.rest += "\n" + strings.TrimSpace(line)
		return nil
	}
	word, rest, _ := strings.Cut(line, " ")
	rest = strings.TrimSpace(rest)
	if option, ok := wireDirectives[word]; ok {
		return option(p, rest)
	}
	if wireSends[word] == nil && wireMessages[word] == nil {
		return fmt.Errorf("unknown word %q", word)
	}
	b.sends = append(b.sends, wireSend{p.line, word, rest})
	return nil
}

// comment takes those that mean something, all at the head of the file; a rule may go on for several lines.
func (p *wireParser) comment(line string) {
	s := p.script
	if len(s.blocks) > 0 {
		return
	}
	text := strings.TrimSpace(strings.TrimPrefix(line, "#"))
	if name, ok := strings.CutPrefix(text, "name:"); ok {
		s.Name = strings.TrimSpace(name)
	} else if rule, ok := strings.CutPrefix(text, "rule:"); ok {
		s.Rule = strings.TrimSpace(rule)
	} else if s.Rule != "" && p.block.line == 1 {
		s.Rule += " " + text
	}
}

// wireDirectives are the words that are no message: how to read, whom the block is for, what is to be repeated.
var wireDirectives = map[string]func(*wireParser, string) error{
	"until": func(p *wireParser, rest string) error {
		number, name, ok := strings.Cut(rest, " ")
		if !ok {
			number, name = "1", rest
		}
		n, err := strconv.Atoi(number)
		p.block.until, p.block.count = name, n
		return err
	},
	"hide": func(p *wireParser, rest string) error {
		p.block.hide = slices.Clone(p.block.hide)
		for _, name := range strings.Fields(rest) {
			p.block.hide = append(append(p.block.hide, name), answerGroups[name]...)
		}
		return nil
	},
	"tally":    func(p *wireParser, _ string) error { p.block.tally = true; return nil },
	"messages": func(p *wireParser, rest string) error { p.block.messages = rest == "on"; return nil },
	"needs": func(p *wireParser, rest string) (err error) {
		p.block.needs, err = strconv.Atoi(rest)
		return err
	},
	"expect": func(p *wireParser, rest string) error {
		why, ok := strings.CutPrefix(rest, "fail:")
		if p.block.fails = strings.TrimSpace(why); !ok || p.block.fails == "" {
			return fmt.Errorf("want `expect fail: issue N`")
		}
		return nil
	},
	"only": func(p *wireParser, rest string) error {
		kind, why, ok := strings.Cut(rest, ":")
		if !ok || strings.TrimSpace(why) == "" {
			return fmt.Errorf("want `only KIND: why`")
		}
		p.script.Only, p.script.OnlyWhy = kind, strings.TrimSpace(why)
		return nil
	},
	"repeat": func(p *wireParser, rest string) (err error) {
		p.loop = len(p.block.sends)
		p.times, err = strconv.Atoi(rest)
		return err
	},
	"end": func(p *wireParser, _ string) error { p.unroll(); return nil },
}

// unroll repeats the lines since `repeat`, with ${i} counting from 1.
func (p *wireParser) unroll() {
	body := slices.Clone(p.block.sends[p.loop:])
	p.block.sends = p.block.sends[:p.loop]
	for i := 1; i <= p.times; i++ {
		for _, send := range body {
			send.rest = strings.ReplaceAll(send.rest, "${i}", strconv.Itoa(i))
			p.block.sends = append(p.block.sends, send)
		}
	}
	p.times = 0
}

// answers parses the part of a paragraph that begins with a ---- line.
func (p *wireParser) answers(at, to int) error {
	for at < to {
		p.line = at + 1
		want, err := parseWant(strings.TrimPrefix(p.script.lines[at], "----"))
		if err != nil {
			return err
		}
		want.at[0] = at + 1
		for at++; at < to && !strings.HasPrefix(p.script.lines[at], "----"); at++ {
			want.lines = append(want.lines, p.script.lines[at])
		}
		want.at[1] = at
		p.block.wants = append(p.block.wants, want)
	}
	return p.add()
}

// parseWant reads what stands behind ----: nothing, `sluice: reason` or `postgres VERSION: reason`.
func parseWant(label string) (*wireWant, error) {
	if label == "" {
		return &wireWant{}, nil
	}
	whom, why, ok := strings.Cut(label, ":")
	words := strings.Fields(whom)
	want := &wireWant{why: strings.TrimSpace(why)}
	if !ok || want.why == "" || len(words) == 0 {
		return nil, fmt.Errorf("want `---- KIND: why` or `---- postgres VERSION: why`")
	}
	want.on = words[0]
	if len(words) == 1 {
		return want, nil
	}
	var err error
	want.since, err = strconv.Atoi(words[1])
	return want, err
}

// want finds the answers that count for a server: its own kind's, of the newest version that it has, else the common ones.
func (b *wireBlock) want(kind string, version int) *wireWant {
	var best *wireWant
	for _, w := range b.wants {
		fits := w.on == "" || w.on == kind && w.since <= version
		if fits && (best == nil || best.on == "" || w.since > best.since) {
			best = w
		}
	}
	return best
}

// Rewrite writes the script again with the answers that a server gave.
func (s *WireScript) Rewrite(actual map[*wireWant][]string) error {
	var out []string
	at := 0
	for _, block := range s.blocks {
		for _, want := range block.wants {
			got, ok := actual[want]
			if !ok {
				continue
			}
			out = append(out, s.lines[at:want.at[0]]...)
			out = append(out, got...)
			at = want.at[1]
		}
	}
	out = append(out, s.lines[at:]...)
	return os.WriteFile(s.Path, []byte(strings.Join(out, "\n")+"\n"), 0o644)
}
