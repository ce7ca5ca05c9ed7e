package sqltests

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"
)

// wireMessages builds the message that a line of a script names. Behind the name stands a JSON object with the fields that
// pgproto3 gives it; a message that is little but text may have that text as it is.
var wireMessages = map[string]func(rest string) (pgproto3.FrontendMessage, error){
	"Bind": wireJSON(wireBind.message),
	"Close": wireJSON(func(m wireObject) pgproto3.FrontendMessage {
		return &pgproto3.Close{ObjectType: m.kind(), Name: m.Name}
	}),
	"CopyData": wireJSON(func(m wireData) pgproto3.FrontendMessage { return &pgproto3.CopyData{Data: m.Data} }),
	"CopyDone": wireJSON(same[pgproto3.CopyDone]),
	"CopyFail": wireText("Message", same[pgproto3.CopyFail]),
	"Describe": wireJSON(func(m wireObject) pgproto3.FrontendMessage {
		return &pgproto3.Describe{ObjectType: m.kind(), Name: m.Name}
	}),
	"Execute":         wireJSON(same[pgproto3.Execute]),
	"Flush":           wireJSON(same[pgproto3.Flush]),
	"FunctionCall":    wireJSON(wireCall.message),
	"Parse":           wireText("Query", wireParse.message),
	"PasswordMessage": wireText("Password", same[pgproto3.PasswordMessage]),
	"Query":           wireText("String", same[pgproto3.Query]),
	"SASLInitialResponse": wireJSON(func(m wireSASL) pgproto3.FrontendMessage {
		return &pgproto3.SASLInitialResponse{AuthMechanism: m.AuthMechanism, Data: m.Data}
	}),
	"SASLResponse": wireJSON(func(m wireData) pgproto3.FrontendMessage { return &pgproto3.SASLResponse{Data: m.Data} }),
	"Sync":         wireJSON(same[pgproto3.Sync]),
	"Terminate":    wireJSON(same[pgproto3.Terminate]),
}

// wireJSON builds a message from its fields.
func wireJSON[T any](build func(T) pgproto3.FrontendMessage) func(string) (pgproto3.FrontendMessage, error) {
	return func(rest string) (pgproto3.FrontendMessage, error) {
		var fields T
		if err := readFields(rest, &fields); err != nil {
			return nil, err
		}
		return build(fields), nil
	}
}

// same builds a message that needs no building.
func same[T any, M interface {
	*T
	pgproto3.FrontendMessage
}](m T) pgproto3.FrontendMessage {
	return M(&m)
}

// readFields reads a JSON object, or nothing, and refuses fields that do not exist: a misspelt one would test something else.
func readFields(text string, into any) error {
	if text == "" {
		return nil
	}
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.DisallowUnknownFields()
	err := decoder.Decode(into)
	if err == nil && decoder.More() {
		return fmt.Errorf("more than one object: %s", text)
	}
	return err
}

// wireText is wireJSON for a line that may also be the one field's text.
func wireText[T any](field string, build func(T) pgproto3.FrontendMessage) func(string) (pgproto3.FrontendMessage, error) {
	fields := wireJSON(build)
	return func(rest string) (pgproto3.FrontendMessage, error) {
		if strings.HasPrefix(rest, "{") {
			return fields(rest)
		}
		data, err := json.Marshal(map[string]string{field: rest})
		if err != nil {
			return nil, err
		}
		return fields(string(data))
	}
}

// wireValue is bytes in JSON: null, text, or {"hex": "…"}.
type wireValue []byte

// UnmarshalJSON reads any of the three.
func (v *wireValue) UnmarshalJSON(data []byte) error {
	if bytes.Equal(data, []byte("null")) {
		*v = nil
		return nil
	}
	var text string
	if json.Unmarshal(data, &text) == nil {
		*v = wireValue(text)
		return nil
	}
	var spelt struct{ Hex string }
	if err := json.Unmarshal(data, &spelt); err != nil {
		return err
	}
	decoded, err := hex.DecodeString(strings.ReplaceAll(spelt.Hex, " ", ""))
	*v = append(wireValue{}, decoded...)
	return err
}

// wireData is a message of bytes.
type wireData struct{ Data wireValue }

// wireSASL begins a SASL login.
type wireSASL struct {
	AuthMechanism string
	Data          wireValue
}

// wireObject is what Describe and Close are about: a statement S or a portal P.
type wireObject struct{ ObjectType, Name string }

func (m wireObject) kind() byte {
	if m.ObjectType == "" {
		return 0 // a client's mistake that a script may want to make
	}
	return m.ObjectType[0]
}

// wireOID is a type by its name or its number.
type wireOID uint32

// UnmarshalJSON reads either.
func (o *wireOID) UnmarshalJSON(data []byte) error {
	var name string
	if json.Unmarshal(data, &name) != nil {
		return json.Unmarshal(data, (*uint32)(o))
	}
	oid, err := typeOID(name)
	*o = wireOID(oid)
	return err
}

// wireParse is Parse with types by name.
type wireParse struct {
	Name, Query   string
	ParameterOIDs []wireOID
}

func (m wireParse) message() pgproto3.FrontendMessage {
	p := &pgproto3.Parse{Name: m.Name, Query: m.Query}
	for _, oid := range m.ParameterOIDs {
		p.ParameterOIDs = append(p.ParameterOIDs, uint32(oid))
	}
	return p
}

// wireBind is Bind with readable parameters.
type wireBind struct {
	DestinationPortal, PreparedStatement    string
	ParameterFormatCodes, ResultFormatCodes []int16
	Parameters                              []wireValue
}

func (m wireBind) message() pgproto3.FrontendMessage {
	b := &pgproto3.Bind{
		DestinationPortal: m.DestinationPortal, PreparedStatement: m.PreparedStatement,
		ParameterFormatCodes: m.ParameterFormatCodes, ResultFormatCodes: m.ResultFormatCodes,
	}
	for _, value := range m.Parameters {
		b.Parameters = append(b.Parameters, value)
	}
	return b
}

// wireCall is FunctionCall, all in text.
type wireCall struct {
	Function  uint32
	Arguments []wireValue
}

func (m wireCall) message() pgproto3.FrontendMessage {
	f := &pgproto3.FunctionCall{Function: m.Function}
	for _, value := range m.Arguments {
		f.Arguments = append(f.Arguments, value)
	}
	return f
}

// wireSends are the lines that are no message of a session: what is done to connections, what is sent before the start, and
// bytes that no client should send.
var wireSends = map[string]func(r *WireRun, ctx context.Context, rest string, wait time.Duration) error{
	"connection": (*WireRun).connection, "connect": (*WireRun).connect, "hangup": (*WireRun).hangup,
	"login": (*WireRun).login, "pause": (*WireRun).pause, "split": (*WireRun).split,
	"StartupMessage": (*WireRun).startupMessage, "CancelRequest": (*WireRun).cancelRequest,
	"SSLRequest": encryptionRequest(&pgproto3.SSLRequest{}), "GSSENCRequest": encryptionRequest(&pgproto3.GSSEncRequest{}),
	"raw": (*WireRun).raw, "frame": (*WireRun).frame,
}

// connection goes on in a named connection, opened and logged in when new.
func (r *WireRun) connection(ctx context.Context, name string, _ time.Duration) error {
	if err := r.leave(name); err != nil {
		return err
	}
	_, err := r.conn(ctx)
	return err
}

// connect opens a connection on which nothing is said yet.
func (r *WireRun) connect(ctx context.Context, name string, _ time.Duration) error {
	if err := r.leave(name); err != nil {
		return err
	}
	c, err := dialWire(ctx, r.Target.Config)
	if err == nil {
		r.conns[name] = c
	}
	return err
}

// leave sends what waits on the current connection before another becomes the current one.
func (r *WireRun) leave(name string) error {
	if name == "" {
		return fmt.Errorf("which connection?")
	}
	if c := r.conns[r.current]; c != nil {
		c.flush()
	}
	r.current = name
	return nil
}

// hangup closes the current connection without a word.
func (r *WireRun) hangup(context.Context, string, time.Duration) error {
	if c := r.conns[r.current]; c != nil {
		c.flush()
		c.net.Close()
		delete(r.conns, r.current)
	}
	return nil
}

// login does the client's part of a login, with the right password or the one given.
func (r *WireRun) login(ctx context.Context, password string, wait time.Duration) error {
	c, err := r.conn(ctx)
	if err != nil {
		return err
	}
	if password == "" {
		password = r.Target.Config.Password
	}
	return c.login(password, time.Now().Add(wait))
}

// pause sends what waits and lets some time pass.
func (r *WireRun) pause(ctx context.Context, rest string, _ time.Duration) error {
	d, err := time.ParseDuration(rest)
	if err != nil {
		return err
	}
	c, err := r.conn(ctx)
	if err != nil {
		return err
	}
	c.flush()
	time.Sleep(d)
	return nil
}

// split has the rest of the block written in pieces of so many bytes.
func (r *WireRun) split(ctx context.Context, rest string, _ time.Duration) error {
	c, err := r.conn(ctx)
	if err != nil {
		return err
	}
	c.flush()
	c.piece, err = strconv.Atoi(rest)
	return err
}

// startupMessage begins a session: {"Version": "3.0", "Parameters": [name, value, …], "Bare": no user and database of our own}.
func (r *WireRun) startupMessage(ctx context.Context, rest string, _ time.Duration) error {
	fields := struct {
		Version    string
		Parameters []string
		Bare       bool
	}{Version: "3.0"}
	if err := readFields(rest, &fields); err != nil {
		return err
	}
	c, err := r.conn(ctx)
	if err != nil {
		return err
	}
	parameters := fields.Parameters
	if !fields.Bare {
		parameters = append([]string{"user", r.Target.Config.User, "database", r.Target.Config.Database}, parameters...)
	}
	return c.startup(fields.Version, parameters)
}

// cancelRequest asks to cancel what connection Of runs; Wrong spoils a byte of its key, Short leaves the last one out.
func (r *WireRun) cancelRequest(ctx context.Context, rest string, _ time.Duration) error {
	var fields struct {
		Of           string
		Wrong, Short bool
	}
	if err := readFields(rest, &fields); err != nil {
		return err
	}
	c, err := r.conn(ctx)
	of := r.conns[fields.Of]
	if err != nil || of == nil || len(of.key) == 0 {
		return fmt.Errorf("no session %q", fields.Of)
	}
	key := bytes.Clone(of.key)
	if fields.Wrong {
		key[0] ^= 0xff
	}
	if fields.Short {
		key = key[:len(key)-1]
	}
	c.out, err = (&pgproto3.CancelRequest{ProcessID: of.pid, SecretKey: key}).Encode(c.out)
	return err
}

// encryptionRequest is a request that the server answers with a single byte.
func encryptionRequest(m pgproto3.FrontendMessage) func(*WireRun, context.Context, string, time.Duration) error {
	return func(r *WireRun, ctx context.Context, _ string, _ time.Duration) error {
		c, err := r.conn(ctx)
		if err != nil {
			return err
		}
		c.bytes++
		c.out, err = m.Encode(c.out)
		return err
	}
}

// raw sends bytes: hexadecimal, and text in double quotes.
func (r *WireRun) raw(ctx context.Context, rest string, _ time.Duration) error {
	c, err := r.conn(ctx)
	if err != nil {
		return err
	}
	data, err := wireBytes(rest)
	c.out = append(c.out, data...)
	return err
}

// frame sends a message of any type and body, with the right length.
func (r *WireRun) frame(ctx context.Context, rest string, _ time.Duration) error {
	c, err := r.conn(ctx)
	if err != nil {
		return err
	}
	kind, body, _ := strings.Cut(rest, " ")
	data, err := wireBytes(body)
	if err != nil || len(kind) != 1 {
		return fmt.Errorf("want `frame TYPE BYTES`")
	}
	c.out = binary.BigEndian.AppendUint32(append(c.out, kind[0]), uint32(len(data)+4))
	c.out = append(c.out, data...)
	return nil
}

// wireToken is a run of hexadecimal digits or a quoted text.
var wireToken = regexp.MustCompile(`"(?:[^"\\]|\\.)*"|\S+`)

// wireBytes reads what raw and frame take.
func wireBytes(text string) ([]byte, error) {
	var out []byte
	for _, token := range wireToken.FindAllString(text, -1) {
		if token[0] == '"' {
			s, err := strconv.Unquote(token)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", token, err)
			}
			out = append(out, s...)
			continue
		}
		data, err := hex.DecodeString(token)
		if err != nil {
			return nil, err
		}
		out = append(out, data...)
	}
	return out, nil
}
