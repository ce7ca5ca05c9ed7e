-- The types of PostgreSQL itself; relations have no row types here.
CREATE VIEW sluice.pg.pg_type AS SELECT * EXCLUDE (formatted), CAST(NULL AS VARCHAR) AS typdefaultbin, CAST(NULL AS VARCHAR) AS typdefault, CAST(NULL AS VARCHAR[]) AS typacl FROM sluice.pg.system_type;
