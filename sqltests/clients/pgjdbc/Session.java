import java.io.StringReader;
import java.math.BigDecimal;
import java.sql.*;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.util.Properties;
import org.postgresql.PGConnection;
import org.postgresql.copy.CopyManager;

/**
 * What a JDBC program does with a database: connects, creates, loads, queries, cancels, asks for metadata. Every step checks its
 * own result, so the same program judges a PostgreSQL and a Sluice. Arguments: JDBC URL, user, password.
 */
public class Session {
  static int passed, failed;

  interface Step { void run() throws Exception; }

  /** Runs one step; its failure is printed and counted, and the next step runs all the same. */
  static void step(String name, Step body) {
    try {
      body.run();
      passed++;
    } catch (Throwable t) {
      failed++;
      System.out.println("FAIL " + name + ": " + t);
    }
  }

  static void equal(Object got, Object want) {
    if (!String.valueOf(got).equals(String.valueOf(want))) throw new AssertionError("got " + got + ", want " + want);
  }

  static void execute(Connection c, String sql) throws SQLException {
    try (Statement s = c.createStatement()) { s.execute(sql); }
  }

  /** The first field of a query's first row. */
  static String one(Connection c, String sql) throws SQLException {
    try (Statement s = c.createStatement(); ResultSet r = s.executeQuery(sql)) { return r.next() ? r.getString(1) : "no row"; }
  }

  /** The SQLSTATE that a step ends with. */
  static String state(Step body) throws Exception {
    try { body.run(); } catch (SQLException e) { return e.getSQLState(); }
    return "no error";
  }

  public static void main(String[] args) throws Exception {
    Properties p = new Properties();
    p.setProperty("user", args[1]);
    p.setProperty("password", args[2]);
    try (Connection c = DriverManager.getConnection(args[0], p)) {
      step("connect", () -> connect(c));
      step("create", () -> create(c));
      step("batch", () -> batch(c));
      step("copy", () -> copy(c));
      step("parameters", () -> parameters(c));
      step("nulls", () -> nulls(c));
      step("prepareThreshold", () -> prepareThreshold(c));
      step("fetchSize", () -> fetchSize(c));
      step("transaction", () -> transaction(c));
      step("errors", () -> errors(c));
      step("cancel", () -> cancel(c));
      step("queryTimeout", () -> queryTimeout(c));
      step("metadata", () -> metadata(c));
      step("resultMetadata", () -> resultMetadata(c));
      step("drop", () -> execute(c, "DROP TABLE jdbc_session"));
    }
    for (String mode : new String[] {"simple", "extendedForPrepared", "extendedCacheEverything"}) {
      Properties q = (Properties) p.clone();
      q.setProperty("preferQueryMode", mode);
      step("mode " + mode, () -> {
        try (Connection c = DriverManager.getConnection(args[0], q)) { mode(c); }
      });
    }
    System.out.println(passed + " passed, " + failed + " failed");
    System.exit(failed == 0 ? 0 : 1);
  }

  static void connect(Connection c) throws Exception {
    equal(c.isValid(5), true);
    equal(c.isReadOnly(), false);
    equal(c.getMetaData().getDatabaseProductName(), "PostgreSQL");
    equal(c.unwrap(PGConnection.class).getParameterStatus("integer_datetimes"), "on");
    equal(c.getSchema(), "public");
    c.setClientInfo("ApplicationName", "jdbc session");
    equal(one(c, "SHOW application_name"), "jdbc session");
  }

  static void create(Connection c) throws Exception {
    execute(c, "DROP TABLE IF EXISTS jdbc_session");
    execute(c, "CREATE TABLE jdbc_session(id int, big bigint, name text, price numeric(12,2), ratio double precision, ok boolean, day date, ts timestamp, raw bytea)");
  }

  static void batch(Connection c) throws Exception {
    c.setAutoCommit(false);
    try (PreparedStatement s = c.prepareStatement("INSERT INTO jdbc_session VALUES (?,?,?,?,?,?,?,?,?)")) {
      for (int i = 0; i < 100; i++) {
        s.setInt(1, i);
        s.setLong(2, 1L << 40);
        s.setString(3, "näme " + i);
        s.setBigDecimal(4, new BigDecimal(i).movePointLeft(2));
        s.setDouble(5, i / 4.0);
        s.setBoolean(6, i % 2 == 0);
        s.setObject(7, LocalDate.of(2025, 1, 1).plusDays(i));
        s.setObject(8, LocalDateTime.of(2025, 1, 1, 12, 0).plusMinutes(i));
        s.setBytes(9, new byte[] {0, (byte) i, (byte) 255});
        s.addBatch();
      }
      int total = 0;
      for (int n : s.executeBatch()) total += n;
      equal(total, 100);
    }
    c.commit();
    c.setAutoCommit(true);
    equal(one(c, "SELECT count(*) FROM jdbc_session"), 100);
    equal(one(c, "SELECT sum(price) FROM jdbc_session"), "49.50");
  }

  static void copy(Connection c) throws Exception {
    CopyManager m = c.unwrap(PGConnection.class).getCopyAPI();
    StringBuilder data = new StringBuilder();
    for (int i = 1000; i < 11000; i++) data.append(i).append(",\"a, ").append(i).append("\"\n");
    equal(m.copyIn("COPY jdbc_session(id, name) FROM STDIN (FORMAT csv)", new StringReader(data.toString())), 10000);
    equal(one(c, "SELECT count(*) || ' ' || sum(id) FROM jdbc_session WHERE id >= 1000"), "10000 59995000");
    java.io.StringWriter out = new java.io.StringWriter();
    equal(m.copyOut("COPY (SELECT id, name FROM jdbc_session WHERE id >= 1000 ORDER BY id) TO STDOUT (FORMAT csv, FORCE_QUOTE(name))", out), 10000);
    equal(out.toString().equals(data.toString()), true);
    equal(state(() -> m.copyIn("COPY jdbc_session(id, name) FROM STDIN (FORMAT csv)", new StringReader("x,y\n"))), "22P02");
    equal(one(c, "SELECT count(*) FROM jdbc_session"), 10100);
  }

  static void parameters(Connection c) throws Exception {
    try (PreparedStatement s = c.prepareStatement("SELECT * FROM jdbc_session WHERE id = ? AND name = ? AND price = ? AND ok = ? AND day = ? AND ts < ?")) {
      s.setInt(1, 8);
      s.setString(2, "näme 8");
      s.setBigDecimal(3, new BigDecimal("0.08"));
      s.setBoolean(4, true);
      s.setObject(5, LocalDate.of(2025, 1, 9));
      s.setTimestamp(6, Timestamp.valueOf("2026-01-01 00:00:00"));
      try (ResultSet r = s.executeQuery()) {
        equal(r.next(), true);
        equal(r.getInt("id"), 8);
        equal(r.getLong("big"), 1L << 40);
        equal(r.getBigDecimal("price"), "0.08");
        equal(r.getDouble("ratio"), 2.0);
        equal(r.getObject("day", LocalDate.class), "2025-01-09");
        equal(r.getObject("ts", LocalDateTime.class), "2025-01-01T12:08");
        equal(r.getBytes("raw")[1], 8);
        equal(r.next(), false);
      }
    }
    try (PreparedStatement s = c.prepareStatement("SELECT count(*) FROM jdbc_session WHERE id = ANY(?)")) {
      s.setArray(1, c.createArrayOf("int4", new Integer[] {1, 2, 3, -1}));
      try (ResultSet r = s.executeQuery()) { r.next(); equal(r.getInt(1), 3); }
    }
  }

  static void nulls(Connection c) throws Exception {
    try (PreparedStatement s = c.prepareStatement("INSERT INTO jdbc_session(id, name, price, day, raw) VALUES (?,?,?,?,?)")) {
      s.setInt(1, -1);
      s.setNull(2, Types.VARCHAR);
      s.setNull(3, Types.NUMERIC);
      s.setNull(4, Types.DATE);
      s.setBytes(5, null);
      equal(s.executeUpdate(), 1);
    }
    try (Statement s = c.createStatement(); ResultSet r = s.executeQuery("SELECT name, price, day, raw FROM jdbc_session WHERE id = -1")) {
      r.next();
      for (int i = 1; i <= 4; i++) equal(r.getObject(i), null);
    }
    execute(c, "DELETE FROM jdbc_session WHERE id = -1");
  }

  /** Past five uses the driver keeps a server-side statement and reads binary results, with the columns it knows from before. */
  static void prepareThreshold(Connection c) throws Exception {
    try (PreparedStatement s = c.prepareStatement("SELECT id, big, name, price, ratio, ok, day, ts, raw FROM jdbc_session WHERE id = ?")) {
      for (int i = 0; i < 12; i++) {
        s.setInt(1, i);
        try (ResultSet r = s.executeQuery()) {
          equal(r.next(), true);
          equal(r.getInt(1) + "|" + r.getLong(2) + "|" + r.getString(3) + "|" + r.getBigDecimal(4) + "|" + r.getDouble(5) + "|" + r.getBoolean(6) + "|" + r.getDate(7) + "|" + r.getTimestamp(8) + "|" + r.getBytes(9)[1],
              i + "|" + (1L << 40) + "|näme " + i + "|" + new BigDecimal(i).setScale(2).movePointLeft(2).setScale(2) + "|" + i / 4.0 + "|" + (i % 2 == 0) + "|" + LocalDate.of(2025, 1, 1).plusDays(i) + "|" + Timestamp.valueOf(LocalDateTime.of(2025, 1, 1, 12, 0).plusMinutes(i)) + "|" + i);
        }
      }
    }
  }

  static void fetchSize(Connection c) throws Exception {
    c.setAutoCommit(false);
    try (Statement s = c.createStatement()) {
      for (int size : new int[] {7, 1000, 10000, 10100, 20000}) {
        s.setFetchSize(size);
        long count = 0, sum = 0;
        try (ResultSet r = s.executeQuery("SELECT id, name FROM jdbc_session ORDER BY id")) {
          for (; r.next(); count++) sum += r.getInt(1);
        }
        equal(count + " " + sum, "10100 59999950");
      }
      s.setFetchSize(10);
      try (ResultSet r = s.executeQuery("SELECT id FROM jdbc_session ORDER BY id"); Statement inner = c.createStatement()) {
        for (int i = 0; i < 15; i++) r.next();
        inner.setFetchSize(10);
        try (ResultSet q = inner.executeQuery("SELECT id FROM jdbc_session ORDER BY id DESC")) {
          for (int i = 0; i < 15; i++) { q.next(); r.next(); }
          equal(r.getInt(1) + " " + q.getInt(1), "29 10985");
        }
      }
    }
    c.commit();
    c.setAutoCommit(true);
  }

  static void transaction(Connection c) throws Exception {
    c.setAutoCommit(false);
    execute(c, "INSERT INTO jdbc_session(id) VALUES (-5)");
    equal(one(c, "SELECT count(*) FROM jdbc_session WHERE id = -5"), 1);
    c.rollback();
    equal(one(c, "SELECT count(*) FROM jdbc_session WHERE id = -5"), 0);
    equal(state(() -> execute(c, "SELECT * FROM jdbc_nosuch")), "42P01");
    equal(state(() -> execute(c, "SELECT 1")), "25P02");
    c.rollback();
    equal(one(c, "SELECT 1"), 1);
    c.commit();
    c.setAutoCommit(true);
    c.setReadOnly(true);
    equal(c.isReadOnly(), true);
    equal(one(c, "SELECT count(*) FROM jdbc_session"), 10100);
    c.setReadOnly(false);
  }

  static void errors(Connection c) throws Exception {
    equal(state(() -> execute(c, "SELECT nosuch FROM jdbc_session")), "42703");
    equal(state(() -> execute(c, "SELEC 1")), "42601");
    equal(state(() -> execute(c, "CREATE TABLE jdbc_session(i int)")), "42P07");
    equal(state(() -> execute(c, "SELECT 1/0")), "22012");
    equal(state(() -> {
      try (PreparedStatement s = c.prepareStatement("SELECT ?::int")) { s.setString(1, "x"); s.executeQuery(); }
    }), "22P02");
    equal(one(c, "SELECT 1"), 1);
  }

  static final String ENDLESS = "SELECT count(*) FROM generate_series(1, 10000000) a(i), generate_series(1, 10000000) b(i) WHERE a.i * b.i = -1";

  static void cancel(Connection c) throws Exception {
    try (Statement s = c.createStatement()) {
      Thread canceller = new Thread(() -> {
        try { Thread.sleep(500); s.cancel(); } catch (Exception e) { System.out.println("cancel: " + e); }
      });
      canceller.start();
      equal(state(() -> s.executeQuery(ENDLESS)), "57014");
      canceller.join();
    }
    equal(one(c, "SELECT 1"), 1);
  }

  static void queryTimeout(Connection c) throws Exception {
    try (Statement s = c.createStatement()) {
      s.setQueryTimeout(1);
      equal(state(() -> s.executeQuery(ENDLESS)), "57014");
    }
    equal(one(c, "SELECT 1"), 1);
  }

  static void metadata(Connection c) throws Exception {
    DatabaseMetaData m = c.getMetaData();
    try (ResultSet r = m.getTables(null, "public", "jdbc_session", new String[] {"TABLE"})) {
      equal(r.next(), true);
      equal(r.getString("TABLE_NAME") + " " + r.getString("TABLE_SCHEM") + " " + r.getString("TABLE_TYPE"), "jdbc_session public TABLE");
      equal(r.next(), false);
    }
    StringBuilder columns = new StringBuilder();
    try (ResultSet r = m.getColumns(null, "public", "jdbc_session", null)) {
      while (r.next()) columns.append(r.getString("COLUMN_NAME")).append(' ').append(r.getString("TYPE_NAME")).append(", ");
    }
    equal(columns, "id int4, big int8, name text, price numeric, ratio float8, ok bool, day date, ts timestamp, raw bytea, ");
    boolean found = false;
    try (ResultSet r = m.getSchemas()) { while (r.next()) found |= r.getString(1).equals("public"); }
    equal(found, true);
  }

  static void resultMetadata(Connection c) throws Exception {
    try (PreparedStatement s = c.prepareStatement("SELECT id, name AS label, price, day FROM jdbc_session WHERE id < ?")) {
      ResultSetMetaData m = s.getMetaData();
      StringBuilder got = new StringBuilder();
      for (int i = 1; i <= m.getColumnCount(); i++) got.append(m.getColumnLabel(i)).append(' ').append(m.getColumnTypeName(i)).append(", ");
      equal(got, "id int4, label text, price numeric, day date, ");
      equal(s.getParameterMetaData().getParameterTypeName(1), "int4");
    }
  }

  static void mode(Connection c) throws Exception {
    execute(c, "CREATE TABLE jdbc_mode(i int, t text)");
    try (PreparedStatement s = c.prepareStatement("INSERT INTO jdbc_mode VALUES (?, ?)")) {
      for (int i = 0; i < 7; i++) { s.setInt(1, i); s.setString(2, "it's " + i); equal(s.executeUpdate(), 1); }
    }
    equal(one(c, "SELECT count(*) || ' ' || sum(i) || ' ' || max(t) FROM jdbc_mode"), "7 21 it's 6");
    execute(c, "DROP TABLE jdbc_mode");
  }
}
