package sqltests

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/jackc/pgx/v5/pgproto3"
)

// Answers that are no message.
const (
	wireClosed  = "closed"    // the server hung up
	wireNothing = "(nothing)" // nothing came in time
)

// wireAnswer is a message from the server, by name, with its body as it came.
type wireAnswer struct {
	name string
	body []byte
}

// authentications are the messages of type R by the number they begin with.
var authentications = map[uint32]string{
	0: "AuthenticationOk", 3: "AuthenticationCleartextPassword", 5: "AuthenticationMD5Password",
	10: "AuthenticationSASL", 11: "AuthenticationSASLContinue", 12: "AuthenticationSASLFinal",
}

// answerNames are all others by their type.
var answerNames = map[byte]string{
	'1': "ParseComplete", '2': "BindComplete", '3': "CloseComplete", 'A': "NotificationResponse", 'C': "CommandComplete",
	'D': "DataRow", 'E': "ErrorResponse", 'G': "CopyInResponse", 'H': "CopyOutResponse", 'I': "EmptyQueryResponse",
	'K': "BackendKeyData", 'N': "NoticeResponse", 'S': "ParameterStatus", 'T': "RowDescription", 'V': "FunctionCallResponse",
	'Z': "ReadyForQuery", 'c': "CopyDone", 'd': "CopyData", 'n': "NoData", 's': "PortalSuspended", 't': "ParameterDescription",
	'v': "NegotiateProtocolVersion",
}

// answerGroups are names that hide several answers at once.
var answerGroups = map[string][]string{
	"scram": {"AuthenticationSASL", "AuthenticationSASLContinue", "AuthenticationSASLFinal"},
	"start": {
		"AuthenticationSASL", "AuthenticationSASLContinue", "AuthenticationSASLFinal", "AuthenticationOk",
		"ParameterStatus", "BackendKeyData",
	},
}

func newAnswer(kind byte, body []byte) wireAnswer {
	name := answerNames[kind]
	if kind == 'R' && len(body) >= 4 {
		name = authentications[binary.BigEndian.Uint32(body)]
	}
	if name == "" {
		name = fmt.Sprintf("(%q %x)", kind, body[:min(len(body), 40)])
	}
	return wireAnswer{name, body}
}

// details shows the body of those messages that have one worth showing.
var details = map[string]func(r *WireRun, body []byte, o wireOptions) (string, error){
	"AuthenticationSASL":       func(_ *WireRun, body []byte, _ wireOptions) (string, error) { return saslMechanisms(body) },
	"BackendKeyData":           func(_ *WireRun, body []byte, _ wireOptions) (string, error) { return strconv.Itoa(len(body) - 4), nil },
	"Byte":                     func(_ *WireRun, body []byte, _ wireOptions) (string, error) { return string(body), nil },
	"CommandComplete":          decoded(func(m *pgproto3.CommandComplete) string { return string(m.CommandTag) }),
	"CopyData":                 func(_ *WireRun, body []byte, _ wireOptions) (string, error) { return wireWord(body), nil },
	"CopyInResponse":           decoded(func(m *pgproto3.CopyInResponse) string { return copyFormats(m.OverallFormat, m.ColumnFormatCodes) }),
	"CopyOutResponse":          decoded(func(m *pgproto3.CopyOutResponse) string { return copyFormats(m.OverallFormat, m.ColumnFormatCodes) }),
	"DataRow":                  decoded(dataRow),
	"ErrorResponse":            showError,
	"FunctionCallResponse":     decoded(func(m *pgproto3.FunctionCallResponse) string { return wireWord(m.Result) }),
	"NegotiateProtocolVersion": decoded(negotiated),
	"NoticeResponse":           showError,
	"NotificationResponse":     showNotification,
	"ParameterDescription":     decoded(parameterTypes),
	"ParameterStatus":          showParameter,
	"ReadyForQuery":            decoded(func(m *pgproto3.ReadyForQuery) string { return string(m.TxStatus) }),
	"RowDescription":           decoded(rowDescription),
}

// decoded adapts a function on a pgproto3 message.
func decoded[T any, M interface {
	*T
	pgproto3.BackendMessage
}](show func(M) string) func(*WireRun, []byte, wireOptions) (string, error) {
	return func(_ *WireRun, body []byte, _ wireOptions) (string, error) {
		m := M(new(T))
		if err := m.Decode(body); err != nil {
			return "", err
		}
		return show(m), nil
	}
}

// show is the one line of an answer.
func (r *WireRun) show(a wireAnswer, o wireOptions) string {
	detail := details[a.name]
	if detail == nil {
		return a.name
	}
	text, err := detail(r, a.body, o)
	if err != nil {
		return fmt.Sprintf("%s (malformed: %v)", a.name, err)
	}
	return strings.TrimSpace(a.name + " " + text)
}

// render is the lines of a block's answers. ParameterStatus messages that stand together are sorted: no rule orders them.
func (r *WireRun) render(answers []wireAnswer, o wireOptions) []string {
	if o.until == "quiet" && len(answers) > 1 {
		answers = answers[:len(answers)-1] // the silence after something
	}
	var lines []string
	for i := 0; i < len(answers); {
		from := len(lines)
		name := answers[i].name
		for ; i < len(answers) && answers[i].name == name; i++ {
			lines = append(lines, r.show(answers[i], o))
		}
		if name == "ParameterStatus" {
			slices.Sort(lines[from:])
		}
	}
	if o.tally {
		return tally(answers)
	}
	return lines
}

// tally counts answers by name, in the order in which the names first came.
func tally(answers []wireAnswer) []string {
	var names []string
	counts := map[string]int{}
	for _, a := range answers {
		if counts[a.name]++; counts[a.name] == 1 {
			names = append(names, a.name)
		}
	}
	for i, name := range names {
		names[i] = fmt.Sprintf("%d %s", counts[name], name)
	}
	return names
}

// plainWord is a value that needs no quotes.
var plainWord = regexp.MustCompile(`^[A-Za-z0-9_.,:;+@/{}()\[\]*<>=~%?!|#$&^-]+$`)

// wireWord shows bytes: NULL, a plain word, a quoted text, or \x and hexadecimal for what is no text.
func wireWord(value []byte) string {
	switch {
	case value == nil:
		return "NULL"
	case bytes.ContainsFunc(value, func(c rune) bool { return unicode.IsControl(c) && !strings.ContainsRune("\n\r\t", c) }), !utf8.Valid(value):
		return `\x` + hex.EncodeToString(value)
	case plainWord.Match(value) && string(value) != "NULL":
		return string(value)
	}
	return strconv.Quote(string(value))
}

func dataRow(m *pgproto3.DataRow) string {
	words := make([]string, len(m.Values))
	for i, value := range m.Values {
		words[i] = wireWord(value)
	}
	return strings.Join(words, " ")
}

// rowDescription is name:type:format for each column, with a type modifier behind the type.
func rowDescription(m *pgproto3.RowDescription) string {
	words := make([]string, len(m.Fields))
	for i, f := range m.Fields {
		kind := typeName(f.DataTypeOID)
		if f.TypeModifier != -1 {
			kind += fmt.Sprintf("/%d", f.TypeModifier)
		}
		words[i] = fmt.Sprintf("%s:%s:%s", wireWord(f.Name), kind, formatName(f.Format))
	}
	return strings.Join(words, " ")
}

func parameterTypes(m *pgproto3.ParameterDescription) string {
	words := make([]string, len(m.ParameterOIDs))
	for i, oid := range m.ParameterOIDs {
		words[i] = typeName(oid)
	}
	return strings.Join(words, " ")
}

func formatName(code int16) string {
	if code == 0 || code == 1 {
		return []string{"text", "binary"}[code]
	}
	return fmt.Sprint(code)
}

// copyFormats is the overall format and those of the columns.
func copyFormats(overall byte, columns []uint16) string {
	words := make([]string, len(columns))
	for i, code := range columns {
		words[i] = formatName(int16(code))
	}
	return fmt.Sprintf("%s [%s]", formatName(int16(overall)), strings.Join(words, " "))
}

func saslMechanisms(body []byte) (string, error) {
	var m pgproto3.AuthenticationSASL
	err := m.Decode(body)
	return strings.Join(m.AuthMechanisms, " "), err
}

func negotiated(m *pgproto3.NegotiateProtocolVersion) string {
	words := append([]string{fmt.Sprintf("%d.%d", m.NewestMinorProtocol>>16, m.NewestMinorProtocol&0xffff)}, m.UnrecognizedOptions...)
	return strings.Join(words, " ")
}

// showParameter hides what belongs to the server under test: its version and the name of its user.
func showParameter(r *WireRun, body []byte, _ wireOptions) (string, error) {
	var m pgproto3.ParameterStatus
	if err := m.Decode(body); err != nil {
		return "", err
	}
	hidden := map[string]string{"server_version": "(any)", "session_authorization": m.Value}
	if m.Value == r.Target.Config.User {
		hidden["session_authorization"] = "(user)"
	}
	if value, ok := hidden[m.Name]; ok {
		m.Value = value
	}
	return m.Name + "=" + m.Value, nil
}

func showNotification(r *WireRun, body []byte, _ wireOptions) (string, error) {
	var m pgproto3.NotificationResponse
	err := m.Decode(body)
	return fmt.Sprintf("%s %s from %s", wireWord([]byte(m.Channel)), wireWord([]byte(m.Payload)), r.nameOf(m.PID)), err
}

// showError is severity, code and position, which are the same in every language; the texts only where a script asks.
func showError(r *WireRun, body []byte, o wireOptions) (string, error) {
	var m pgproto3.ErrorResponse
	if err := m.Decode(body); err != nil {
		return "", err
	}
	words := []string{m.SeverityUnlocalized, m.Code}
	if m.Position != 0 {
		words = append(words, fmt.Sprintf("P=%d", m.Position))
	}
	if !o.messages {
		return strings.Join(words, " "), nil
	}
	words = append(words, strconv.Quote(strings.ReplaceAll(m.Message, r.Target.Config.User, "(user)")))
	for _, text := range []struct{ field, value string }{{"D", m.Detail}, {"H", m.Hint}, {"W", m.Where}} {
		if text.value != "" {
			words = append(words, text.field+"="+strconv.Quote(text.value))
		}
	}
	return strings.Join(words, " "), nil
}
