-- Layout version 2. Run once per database, in one transaction, under the advisory lock pgvfs.install.
-- doc.go says what each column means. Other programs use these tables too: nothing here may be altered.

CREATE SCHEMA pgvfs;

CREATE TABLE pgvfs.layout (version int4 NOT NULL);

CREATE SEQUENCE pgvfs.file_ids AS int8;

CREATE TABLE pgvfs.files (
	volume text COLLATE "C" NOT NULL,
	path text COLLATE "C" NOT NULL,
	file_id int8 NOT NULL UNIQUE,
	size int8 NOT NULL,
	created_at timestamptz NOT NULL DEFAULT now(),
	PRIMARY KEY (volume, path),
	CONSTRAINT file_shape CHECK (
		volume ~ '^[a-z0-9][a-z0-9._-]{0,62}$'
		AND octet_length(path) BETWEEN 1 AND 1024
		AND size BETWEEN 0 AND 2147483648 * 8120
	)
);

-- A full row is 24 bytes of header, 8 + 4 + 4 (length word) and 8120 of data: 8160, one row to a page of 8 KB. The
-- target keeps TOAST from moving the data elsewhere, EXTERNAL keeps it from being compressed.
CREATE TABLE pgvfs.chunks (
	file_id int8 NOT NULL,
	no int4 NOT NULL,
	data bytea NOT NULL,
	PRIMARY KEY (file_id, no),
	CONSTRAINT chunk_shape CHECK (no >= 0 AND octet_length(data) BETWEEN 1 AND 8120)
) WITH (
	toast_tuple_target = 8160,
	autovacuum_vacuum_scale_factor = 0.01,
	autovacuum_analyze_scale_factor = 0.02,
	autovacuum_vacuum_threshold = 1000
);
ALTER TABLE pgvfs.chunks ALTER COLUMN data SET STORAGE EXTERNAL;

CREATE TABLE pgvfs.garbage (
	file_id int8 PRIMARY KEY,
	queued_at timestamptz NOT NULL DEFAULT now()
);

INSERT INTO pgvfs.layout (version) VALUES (2);
