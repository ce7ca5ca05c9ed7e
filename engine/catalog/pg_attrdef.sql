CREATE VIEW sluice.pg.pg_attrdef AS
	SELECT sluice.pg.named_oid('default/' || attrelid, CAST(attnum AS VARCHAR)) AS oid, attrelid AS adrelid, attnum AS adnum, adbin FROM sluice.pg.lake_column WHERE adbin IS NOT NULL;
