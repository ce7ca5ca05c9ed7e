-- Types that DuckDB has no name for. A cast to one of them is found along the search path.
CREATE TYPE sluice.pg."name" AS VARCHAR;
CREATE TYPE sluice.pg."jsonb" AS JSON;
CREATE TYPE sluice.pg."xid" AS BIGINT;
CREATE TYPE sluice.pg."cid" AS BIGINT;
CREATE TYPE sluice.pg."tid" AS VARCHAR;
CREATE TYPE sluice.pg."xml" AS VARCHAR;
CREATE TYPE sluice.pg."cstring" AS VARCHAR;
CREATE TYPE sluice.pg."unknown" AS VARCHAR;
CREATE TYPE sluice.pg."aclitem" AS VARCHAR;
CREATE TYPE sluice.pg."varbit" AS BIT;
CREATE TYPE sluice.pg."pg_node_tree" AS VARCHAR;
CREATE TYPE sluice.pg."pg_lsn" AS VARCHAR;
