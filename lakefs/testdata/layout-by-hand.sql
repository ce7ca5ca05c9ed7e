-- The tables of layout 2 as its description has them (column by column, in words and numbers), by nobody's program:
-- schema.sql is what is tested against them. In the order in which they are made.
CREATE SCHEMA pgvfs;

CREATE TABLE pgvfs.layout (version integer);
ALTER TABLE pgvfs.layout ALTER version SET NOT NULL;
INSERT INTO pgvfs.layout VALUES (2);

CREATE SEQUENCE pgvfs.file_ids;

CREATE TABLE pgvfs.files (
	volume     text COLLATE pg_catalog."C" NOT NULL,
	path       text COLLATE pg_catalog."C" NOT NULL,
	file_id    bigint NOT NULL CONSTRAINT files_file_id_key UNIQUE,
	size       bigint NOT NULL,
	created_at timestamp with time zone DEFAULT now() NOT NULL,
	CONSTRAINT files_pkey PRIMARY KEY (volume, path),
	CONSTRAINT file_shape CHECK (volume ~ '^[a-z0-9][a-z0-9._-]{0,62}$'
		AND octet_length(path) >= 1 AND octet_length(path) <= 1024
		AND size >= 0 AND size <= 17437567221760)
);

CREATE TABLE pgvfs.chunks (
	file_id bigint NOT NULL,
	no      integer NOT NULL,
	data    bytea NOT NULL,
	CONSTRAINT chunks_pkey PRIMARY KEY (file_id, no),
	CONSTRAINT chunk_shape CHECK (no >= 0 AND octet_length(data) >= 1 AND octet_length(data) <= 8120)
) WITH (toast_tuple_target = 8160);
ALTER TABLE pgvfs.chunks ALTER data SET STORAGE EXTERNAL;

CREATE TABLE pgvfs.garbage (
	file_id   bigint CONSTRAINT garbage_pkey PRIMARY KEY,
	queued_at timestamp with time zone DEFAULT now() NOT NULL
);
