// A long audit log, written directly to the file of a stopped server: the entries of an organization of some hundred people over years. For
// the audit row. Nothing is flushed and the indexes are dropped during the writes, so the file cannot be trusted after a crash.
import { Database } from "bun:sqlite";

const DAY_MS = 86_400_000;
const YEARS_MS = 3 * 366 * DAY_MS;
export const PEOPLE = 500;
export const ORGANIZATIONS = 12;
/** A user with a quarter of all entries, but only builds: frequent, and never combined with equally frequent values. */
export const ROBOT = "person-0";
/** A common workspace name. */
export const POPULAR = "dev";

/** Cumulative shares of kinds, out of a hundred entries. Deleted users are rare. */
const KINDS: readonly [number, action: string, resource_type: string][] = [
  [30, "start", "workspace_build"],
  [55, "stop", "workspace_build"],
  [70, "login", "api_key"],
  [80, "create", "api_key"],
  [88, "write", "workspace"],
  [93, "create", "chat"],
  [97, "create", "workspace"],
  [99, "write", "template"],
  [100, "delete", "user"],
];

const toCaseExpression = (column: 1 | 2): string =>
  `case ${KINDS.map((kind) => `when lot < ${kind[0]} then '${kind[column]}'`).join(" ")} end`;

const toIdExpression = (kind: string, n: string): string => `'${kind}-0000-4000-8000-' || printf('%012x', ${n})`;

/** Returns an expression for a number that varies strongly between neighbors, and by index, so that every combination occurs. */
const mixExpression = (index: number): string => `(((n + ${index * 7919}) * 2654435761 % 4294967296) >> ${3 + index})`;

const toInsertStatement = (now: number, from: number, to: number, entries: number): string => `
insert into audit_logs (id, time, organization_id, user_id, ip, user_agent, action, resource_type, resource_id, resource_target,
  resource_icon, workspace_id, build_reason, diff, additional_fields, status_code, request_id)
with recursive
numbers(n) as materialized (select ${from} union all select n + 1 from numbers where n < ${to - 1}),
lots as materialized (select n, ${mixExpression(0)} % 100 as lot, ${mixExpression(1)} % 40000 as thing, ${mixExpression(2)} as luck from numbers),
kinds as materialized (select *, ${toCaseExpression(1)} as action, ${toCaseExpression(2)} as resource_type, lot < 55 as is_build,
  iif(lot < 50 and luck % 2 = 0, 0, 1 + luck % ${PEOPLE - 1}) as person from lots)
select ${toIdExpression("cccccccc", "n")}, ${now - YEARS_MS} + cast(n * ${YEARS_MS / entries} as integer),
  iif(action = 'login', null, ${toIdExpression("bbbbbbbb", `(person + iif(person = 0, luck / 2, luck / 1024 % 2 * 5)) % ${ORGANIZATIONS}`)}),
  ${toIdExpression("aaaaaaaa", "person")}, '192.0.2.7', 'Mozilla/5.0 (X11; Linux x86_64)', action, resource_type, ${toIdExpression("eeeeeeee", "thing")},
  iif(thing % 40 = 0, '${POPULAR}', 'thing-' || thing), '',
  iif(is_build or resource_type = 'workspace', ${toIdExpression("eeeeeeee", "thing")}, null),
  iif(is_build, iif(n % 3 = 0, iif(action = 'start', 'autostart', 'autostop'), 'initiator'), ''),
  '{"name":{"old":"before","new":"thing-' || thing || '","secret":false}}',
  iif(is_build, '{"workspace_name":"thing-' || thing || '","build_number":"' || (n % 90) || '"}', '{}'), 200, ${toIdExpression("dddddddd", "n")}
from kinds`;

const ENTRIES_PER_STATEMENT = 250_000;

/** Returns the ID of the n-th entry from the oldest. */
export const entryAt = (n: number): string => `cccccccc-0000-4000-8000-${n.toString(16).padStart(12, "0")}`;

/**
 * Writes entries in chronological order that end at `now`, with varying kinds, people, organizations and objects. Makes the user the
 * auditor of each organization. Returns the duration in seconds.
 */
export const seedAudit = (file: string, now: number, entries: number, auditor?: string): number => {
  const startedAt = performance.now();
  using db = new Database(file, { readwrite: true, create: false });
  // The WAL mode must be left first; otherwise the next pragma is ignored.
  db.run("pragma journal_mode=delete");
  db.run("pragma journal_mode=off");
  db.run("pragma synchronous=off");
  db.run("pragma temp_store=memory");
  db.run("pragma cache_size=-1000000");
  const createdAt = now - YEARS_MS;
  db.run(`with recursive n(n) as (select 0 union all select n + 1 from n where n < ${PEOPLE - 1})
    insert into users (id, email, username, status, login_type, created_at, updated_at)
    select ${toIdExpression("aaaaaaaa", "n")}, 'p' || n || '@example.com', 'person-' || n, 'active', 'none', ${createdAt}, ${createdAt} from n`);
  db.run(`with recursive n(n) as (select 0 union all select n + 1 from n where n < ${ORGANIZATIONS - 1})
    insert into organizations (id, name, display_name, created_at, updated_at)
    select ${toIdExpression("bbbbbbbb", "n")}, 'team-' || n, 'Team ' || n, ${createdAt}, ${createdAt} from n`);
  if (auditor) {
    db.prepare(`insert into organization_members (organization_id, user_id, roles, created_at, updated_at)
      select id, ?, '["organization-auditor"]', created_at, created_at from organizations where name like 'team-%'`).run(
      auditor,
    );
  }
  const indices = db
    .query("select name, sql from sqlite_master where type = 'index' and tbl_name = 'audit_logs' and sql not null")
    .all() as { name: string; sql: string }[];
  for (const { name } of indices) db.run(`drop index ${name}`);
  for (let from = 0; from < entries; from += ENTRIES_PER_STATEMENT)
    db.run(toInsertStatement(now, from, Math.min(from + ENTRIES_PER_STATEMENT, entries), entries));
  for (const { sql } of indices) db.run(sql);
  db.run("pragma journal_mode=wal");
  return (performance.now() - startedAt) / 1000;
};
