package engine

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgerrcode"
	"github.com/rs/zerolog"

	"sluice/engine/catalog"
	"sluice/engine/pgcodec"
	"sluice/engine/pgerr"
	"sluice/lakefs"
)

// SessionConfig says who a session is for.
type SessionConfig struct {
	User   string            // the authenticated name
	Admin  bool              // may reach what only an administrator may
	Params map[string]string // start-up parameters: settings by name
	Notice func(*pgerr.Error)
	PID    uint32 // what pg_backend_pid() answers
}

// Session is one client's state: a DuckDB connection, its settings and its transaction. One goroutine uses it at a
// time.
type Session struct {
	engine *Engine
	in     *instance
	conn   *duckConn
	client *lakefs.Client // the connection as the bridge knows it: what runs there ends with its statement
	cfg    SessionConfig
	log    zerolog.Logger

	settings *settingsState
	codec    pgcodec.Settings // what the text form of values depends on, derived from settings
	applied  int              // the settings' version that DuckDB and the encoders have
	pathGaps bool             // search_path names schemas that did not exist when it was applied

	tx       txState
	serial   uint64               // of DuckDB's transaction: what was bound in another one is bound again
	active   *rows                // what streams from conn, if anything does
	fetching *Result              // the FETCH that is not read to its end, if there is one
	portals  map[string]*Portal   // by name
	prepared map[string]*prepared // statements by name, of PREPARE and of Parse
}

// Param is one reported setting.
type Param struct{ Name, Value string }

// NewSession opens a DuckDB connection and applies the start-up parameters. An unknown parameter or a bad value is an
// error with the SQLSTATE that PostgreSQL gives it.
func (e *Engine) NewSession(ctx context.Context, cfg SessionConfig) (*Session, error) {
	in, err := e.instance(ctx)
	if err != nil {
		return nil, err
	}
	conn, err := connect(in.db)
	if err != nil {
		return nil, pgerr.New(pgerrcode.TooManyConnections, "no DuckDB connection could be made").WithCause(err)
	}
	in.acquire()
	s := &Session{
		engine: e, in: in, conn: conn, cfg: cfg, log: e.log,
		settings: newSettings(), prepared: map[string]*prepared{}, portals: map[string]*Portal{},
	}
	s.client = in.bridge.BindClient(conn.conn.Ptr)
	if cfg.Admin {
		s.client.AllowGuarded()
	}
	if err := s.start(ctx); err != nil {
		s.Close()
		return nil, s.pgError(ctx, err, nil)
	}
	return s, nil
}

// start gives the connection its settings.
func (s *Session) start(ctx context.Context) error {
	s.settings.set("session_authorization", s.cfg.User, false)
	s.settings.set("in_hot_standby", onOff(s.in.readOnly), false)
	s.settings.set("transaction_read_only", onOff(s.in.readOnly), false)
	s.settings.set("is_superuser", onOff(s.cfg.Admin), false)
	for name, value := range s.cfg.Params {
		key := strings.ToLower(name)
		words := []string{value}
		if key == "search_path" {
			words = splitSearchPath(value)
		}
		checked, err := checkSetting(key, words)
		if err != nil {
			return err
		}
		s.settings.set(key, checked, false)
	}
	s.settings.initial = s.settings.all()
	for name, value := range map[string]string{
		"sluice_user": quoteLiteral(s.cfg.User), "sluice_database": quoteLiteral(s.engine.cfg.Lake),
		"sluice_pid": strconv.FormatUint(uint64(s.cfg.PID), 10), "sluice_read_only": strconv.FormatBool(s.in.readOnly),
	} {
		if err := s.conn.exec(ctx, "SET VARIABLE "+name+" = "+value); err != nil {
			return fmt.Errorf("set %s: %w", name, err)
		}
	}
	if err := s.applySettings(ctx); err != nil { // reads the lake's schemas
		return err
	}
	if !s.cfg.Admin {
		if err := s.client.AllowDatabases(readable(s.engine.cfg.Lake), writable(s.engine.cfg.Lake)); err != nil {
			return fmt.Errorf("restrict the session to its databases: %w", err)
		}
	}
	if s.in.unpinned {
		return wrap(lakefs.KeepSchemas(s.conn.conn.Ptr), "keep DuckLake's schemas for transactions")
	}
	return nil
}

// Close ends the session. What was open is rolled back.
func (s *Session) Close() {
	s.closePortals()
	if s.active != nil {
		s.active.discard(errTxOver())
	}
	s.forgetAll()
	s.client.Release()
	s.conn.close()
	s.in.release()
}

// execution is one run of a statement, from Run until its result is closed. Its context ends by statement_timeout and with
// the context of whichever call is under way, which is how a cancel request ends it.
type execution struct {
	s      *Session
	ctx    context.Context
	cancel context.CancelCauseFunc
	timer  context.CancelFunc
}

// newExecution starts one; end must be called.
func (s *Session) newExecution() *execution {
	x := &execution{s: s, timer: func() {}}
	ctx := context.Background()
	if d, err := parseDuration(s.settings.value("statement_timeout")); err == nil && d > 0 {
		timeout := pgerr.New(pgerrcode.QueryCanceled, "canceling statement due to statement timeout")
		ctx, x.timer = context.WithTimeoutCause(ctx, d, timeout)
	}
	x.ctx, x.cancel = context.WithCancelCause(ctx)
	return x
}

// enter makes x what the store's reads belong to, and ties it to ctx until leave is called.
func (x *execution) enter(ctx context.Context) (leave func()) {
	x.s.bind(x.ctx)
	untie := context.AfterFunc(ctx, func() { x.cancel(context.Cause(ctx)) })
	return func() {
		untie()
		x.s.bind(context.Background())
	}
}

// end frees what x holds.
func (x *execution) end() {
	x.cancel(context.Canceled)
	x.timer()
}

// bind tells the store whose reads and writes these are.
func (s *Session) bind(ctx context.Context) { s.client.SetContext(ctx) }

// ParameterStatus lists the reported settings as they are now, in a fixed order.
func (s *Session) ParameterStatus() []Param {
	var out []Param
	for i := range settingTable {
		if d := &settingTable[i]; d.reported {
			out = append(out, Param{d.name, s.settings.value(strings.ToLower(d.name))})
		}
	}
	return out
}

// Settings is what the text form of values depends on. It is valid until the next statement.
func (s *Session) Settings() *pgcodec.Settings { return &s.codec }

// notice sends one to the client.
func (s *Session) notice(n *pgerr.Error) {
	if s.cfg.Notice != nil {
		s.cfg.Notice(n)
	}
}

// applySettings makes the settings' values those of DuckDB's connection and of the encoders, if they changed since
// they last were. Callable in a transaction.
func (s *Session) applySettings(ctx context.Context) error {
	if s.applied == s.settings.version {
		return nil
	}
	zone := s.settings.value("timezone")
	location, err := time.LoadLocation(zone)
	if err != nil {
		return fmt.Errorf("load the time zone %q: %w", zone, err)
	}
	digits, err := strconv.Atoi(s.settings.value("extra_float_digits"))
	if err != nil {
		return fmt.Errorf("extra_float_digits: %w", err)
	}
	s.codec = pgcodec.Settings{Location: location, ExtraFloatDigits: digits}
	s.codec.SetDateStyle(s.settings.value("datestyle"))
	s.codec.SetIntervalStyle(s.settings.value("intervalstyle"))
	s.codec.SetByteaOutput(s.settings.value("bytea_output"))
	if err := s.conn.exec(ctx, "SET TimeZone = "+quoteLiteral(zone)); err != nil {
		return err
	}
	if err := s.applySearchPath(ctx); err != nil {
		return err
	}
	if err := s.conn.exec(ctx, "SET VARIABLE sluice_settings = "+mapLiteral(s.settings.all())); err != nil {
		return err
	}
	s.applied = s.settings.version
	return nil
}

// applySearchPath gives DuckDB the schemas of search_path that exist, then the catalogs. public is DuckLake's main.
func (s *Session) applySearchPath(ctx context.Context) error {
	exist := map[string]bool{}
	err := s.conn.rows(ctx, "SELECT schema_name FROM duckdb_schemas() WHERE database_name = "+quoteLiteral(s.engine.cfg.Lake),
		func(row []string) { exist[row[0]] = true })
	if err != nil {
		return err
	}
	var path, shown []string
	s.pathGaps = false
	for _, name := range splitSearchPath(s.settings.value("search_path")) {
		schema := name
		switch name {
		case "$user":
			schema = s.cfg.User
		case "public":
			schema = "main"
		case "pg_catalog", "pg_temp":
			continue // always searched
		}
		if !exist[schema] {
			s.pathGaps = true
			continue
		}
		path = append(path, quoteIdent(s.engine.cfg.Lake)+"."+quoteIdent(schema))
		shown = append(shown, quoteLiteral(name))
	}
	if len(path) == 0 { // DuckDB wants somewhere to be
		path = append(path, quoteIdent(s.engine.cfg.Lake)+`."main"`)
	}
	path = append(path, catalog.SearchPath)
	if err := s.conn.exec(ctx, "SET search_path = "+quoteLiteral(strings.Join(path, ","))); err != nil {
		return err
	}
	return s.conn.exec(ctx, "SET VARIABLE sluice_search_path = ["+strings.Join(shown, ", ")+"]::VARCHAR[]")
}

// mapLiteral writes a MAP of DuckDB with its keys in order.
func mapLiteral(m map[string]string) string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	parts := make([]string, len(keys))
	for i, k := range keys {
		parts[i] = quoteLiteral(k) + ": " + quoteLiteral(m[k])
	}
	return "MAP {" + strings.Join(parts, ", ") + "}"
}

// onOff is a Boolean as PostgreSQL shows settings.
func onOff(b bool) string {
	if b {
		return "on"
	}
	return "off"
}
