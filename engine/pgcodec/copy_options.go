package pgcodec

import (
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgerrcode"

	"sluice/engine/pgerr"
)

// CopyOption is one option of a COPY as the client wrote it.
type CopyOption struct {
	Name  string   // lower case
	Value string   // empty where only the name was given
	List  []string // columns of FORCE_QUOTE and its like; "*" alone = all
}

// copyOptionParser collects the options. The format decides the defaults, so it is read first.
type copyOptionParser struct {
	options CopyOptions
	in      bool
	columns []Column
}

// copyOptionRows are the options that are known, and who reads them.
var copyOptionRows = map[string]func(p *copyOptionParser, o CopyOption) error{
	"format":         func(*copyOptionParser, CopyOption) error { return nil },
	"freeze":         func(*copyOptionParser, CopyOption) error { return nil }, // nothing here to freeze
	"delimiter":      (*copyOptionParser).delimiter,
	"null":           (*copyOptionParser).null,
	"default":        (*copyOptionParser).defaultMarker,
	"header":         (*copyOptionParser).header,
	"quote":          (*copyOptionParser).quote,
	"escape":         (*copyOptionParser).escape,
	"force_quote":    (*copyOptionParser).forceQuote,
	"force_not_null": (*copyOptionParser).forceNotNull,
	"force_null":     (*copyOptionParser).forceNull,
	"encoding":       (*copyOptionParser).encoding,
	"on_error":       (*copyOptionParser).onError,
	"log_verbosity":  func(*copyOptionParser, CopyOption) error { return nil },
}

// copyFormats are the names of the formats.
var copyFormats = map[string]CopyFormat{"": CopyText, "text": CopyText, "csv": CopyCSV, "binary": CopyBinary}

// ParseCopyOptions reads the options of COPY FROM (in) or COPY TO. Errors are PostgreSQL's: 42601, 22023, 0A000, 42703.
func ParseCopyOptions(list []CopyOption, in bool, columns []Column) (CopyOptions, error) {
	p := copyOptionParser{in: in, columns: columns}
	format := ""
	for i, o := range list {
		if copyOptionRows[o.Name] == nil {
			return p.options, pgerr.Newf(pgerrcode.SyntaxError, "option %q not recognized", o.Name)
		}
		if slices.ContainsFunc(list[:i], func(other CopyOption) bool { return other.Name == o.Name }) {
			return p.options, pgerr.New(pgerrcode.SyntaxError, "conflicting or redundant options")
		}
		if o.Name == "format" {
			format = o.Value
		}
	}
	kind, known := copyFormats[format]
	if !known {
		return p.options, pgerr.Newf(pgerrcode.InvalidParameterValue, "COPY format %q not recognized", format)
	}
	p.options = NewCopyOptions(kind)
	for _, c := range columns {
		p.options.ColumnNames = append(p.options.ColumnNames, c.Name)
	}
	for _, o := range list {
		if err := copyOptionRows[o.Name](&p, o); err != nil {
			return p.options, err
		}
	}
	if kind == CopyCSV && !slices.ContainsFunc(list, func(o CopyOption) bool { return o.Name == "escape" }) {
		p.options.Escape = p.options.Quote
	}
	return p.options, p.options.Check()
}

// only refuses an option that the format does not have.
func (p *copyOptionParser) only(o CopyOption, formats ...CopyFormat) error {
	if slices.Contains(formats, p.options.Format) {
		return nil
	}
	name := strings.ReplaceAll(strings.ToUpper(o.Name), "_", " ")
	if p.options.Format == CopyBinary && len(formats) > 1 {
		return pgerr.Newf(pgerrcode.SyntaxError, "cannot specify %s in BINARY mode", name)
	}
	return pgerr.Newf(pgerrcode.FeatureNotSupported, "COPY %s available only in CSV mode", strings.ToLower(name))
}

// oneByte reads an option of one character.
func (p *copyOptionParser) oneByte(o CopyOption, words string) (byte, error) {
	if len(o.Value) != 1 {
		return 0, pgerr.Newf(pgerrcode.FeatureNotSupported, "COPY %s must be a single one-byte character", words)
	}
	return o.Value[0], nil
}

// delimiter reads DELIMITER.
func (p *copyOptionParser) delimiter(o CopyOption) (err error) {
	if err = p.only(o, CopyText, CopyCSV); err == nil {
		p.options.Delimiter, err = p.oneByte(o, "delimiter")
	}
	return err
}

// null reads NULL.
func (p *copyOptionParser) null(o CopyOption) error {
	p.options.Null = o.Value
	return p.only(o, CopyText, CopyCSV)
}

// defaultMarker reads DEFAULT.
func (p *copyOptionParser) defaultMarker(o CopyOption) error {
	if !p.in {
		return pgerr.New(pgerrcode.FeatureNotSupported, "COPY DEFAULT only available using COPY FROM")
	}
	p.options.Default, p.options.HasDefault = o.Value, true
	return p.only(o, CopyText, CopyCSV)
}

// header reads HEADER, which is a boolean or MATCH.
func (p *copyOptionParser) header(o CopyOption) error {
	if strings.EqualFold(o.Value, "match") {
		if !p.in {
			return pgerr.Newf(pgerrcode.FeatureNotSupported, "cannot use \"%s\" with HEADER in COPY TO", o.Value)
		}
		p.options.Header = HeaderMatch
		return nil
	}
	on, f := true, parsed
	if o.Value != "" {
		on, f = parseBool([]byte(o.Value))
	}
	if f != parsed {
		return pgerr.New(pgerrcode.SyntaxError, "header requires a Boolean value or \"match\"")
	}
	if on {
		p.options.Header = HeaderLine
	}
	return nil
}

// quote reads QUOTE.
func (p *copyOptionParser) quote(o CopyOption) (err error) {
	if err = p.only(o, CopyCSV); err == nil {
		p.options.Quote, err = p.oneByte(o, "quote")
	}
	return err
}

// escape reads ESCAPE.
func (p *copyOptionParser) escape(o CopyOption) (err error) {
	if err = p.only(o, CopyCSV); err == nil {
		p.options.Escape, err = p.oneByte(o, "escape")
	}
	return err
}

// names turns column names into their places.
func (p *copyOptionParser) names(o CopyOption) ([]int, error) {
	words := strings.ToUpper(o.Name)
	if len(o.List) == 1 && o.List[0] == "*" {
		all := make([]int, len(p.columns))
		for i := range all {
			all[i] = i
		}
		return all, nil
	}
	var places []int
	for _, name := range o.List {
		i := slices.IndexFunc(p.columns, func(c Column) bool { return c.Name == name })
		if i < 0 {
			return nil, pgerr.Newf(pgerrcode.InvalidColumnReference, "%s column \"%s\" not referenced by COPY", words, name)
		}
		places = append(places, i)
	}
	return places, nil
}

// forceQuote reads FORCE_QUOTE.
func (p *copyOptionParser) forceQuote(o CopyOption) (err error) {
	if p.in {
		return pgerr.New(pgerrcode.FeatureNotSupported, "COPY force quote only available using COPY TO")
	}
	if err = p.only(o, CopyCSV); err == nil {
		p.options.ForceQuote, err = p.names(o)
	}
	return err
}

// forceNotNull reads FORCE_NOT_NULL.
func (p *copyOptionParser) forceNotNull(o CopyOption) (err error) {
	if !p.in {
		return pgerr.New(pgerrcode.FeatureNotSupported, "COPY force not null only available using COPY FROM")
	}
	if err = p.only(o, CopyCSV); err == nil {
		p.options.ForceNotNull, err = p.names(o)
	}
	return err
}

// forceNull reads FORCE_NULL.
func (p *copyOptionParser) forceNull(o CopyOption) (err error) {
	if !p.in {
		return pgerr.New(pgerrcode.FeatureNotSupported, "COPY force null only available using COPY FROM")
	}
	if err = p.only(o, CopyCSV); err == nil {
		p.options.ForceNull, err = p.names(o)
	}
	return err
}

// utf8Names are the spellings of the one encoding there is.
var utf8Names = []string{"utf8", "utf-8", "unicode", "sql_ascii"}

// encoding reads ENCODING.
func (p *copyOptionParser) encoding(o CopyOption) error {
	if !slices.Contains(utf8Names, strings.ToLower(o.Value)) {
		return pgerr.New(pgerrcode.FeatureNotSupported, fmt.Sprintf("COPY encoding %q is not supported", o.Value)).
			WithHint("Convert the data to UTF8.")
	}
	p.options.Encoding = o.Value
	return nil
}

// onError reads ON_ERROR, whose default alone is there.
func (p *copyOptionParser) onError(o CopyOption) error {
	if strings.EqualFold(o.Value, "stop") {
		return nil
	}
	return pgerr.Newf(pgerrcode.FeatureNotSupported, "COPY ON_ERROR %q is not supported", o.Value)
}
