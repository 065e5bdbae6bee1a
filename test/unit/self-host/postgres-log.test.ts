/** Which lines of PostgreSQL are in the server's log. */
import { expect, test } from "vitest";
import { isWorthLogging } from "../../../self-host/postgres/postgres.ts";

const PREFIX = "2026-11-27 21:44:38.906 UTC [23925]";

test.each([
  "FATAL:  the database system is starting up",
  "FATAL:  the database system is not yet accepting connections",
  "DETAIL:  Consistent recovery state has not been yet reached.",
  "FATAL:  terminating connection due to unexpected postmaster exit",
])("after a kill -9, %s is not logged for each connection", (line) => {
  expect(isWorthLogging(`${PREFIX} ${line}`)).toBe(false);
});

test.each([
  'PANIC:  could not write to file "pg_wal/xlogtemp.28857": No space left on device',
  'FATAL:  could not open file "global/pg_filenode.map": Input/output error',
  "DETAIL:  The failed process was running: autovacuum",
])("%s is logged", (line) => {
  expect(isWorthLogging(`${PREFIX} ${line}`)).toBe(true);
});
