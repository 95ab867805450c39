// Statements whose guards read other rows than they write run under a lock, or are listed here with the reason why they need none.
import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { ALONE } from "#db/engine/cross-row-guards.ts";
import { compiledTexts } from "#db/engine/sql.ts";
import { toLockStatement } from "#db/pg/guard-locks.ts";

const ROOT = fileURLToPath(new URL("../../../", import.meta.url));

const RETENTION_REASON = "removes rows that are old or too many: rows inserted concurrently are removed next time";
const ONE_ACTOR_REASON = "the other rows belong to the same chat, workspace or agent, and only one node has its actor";
const NO_GUARD_REASON =
  "no guard of this statement depends on inserts of such rows, so a single server may also run them in this order";

/** The beginning of each statement, and the reason. */
const REVIEWED: readonly (readonly [string, string])[] = [
  ['delete from "known_addresses"', RETENTION_REASON],
  ['delete from "audit_logs" where "audit_logs"."key" in', RETENTION_REASON],
  ['delete from "connection_logs" where "connection_logs"."key" in', RETENTION_REASON],
  ['delete from "workspace_activity"', RETENTION_REASON],
  ['delete from "app_statuses" where "app_statuses"."app_id"', RETENTION_REASON],
  ['delete from "model_recordings"', RETENTION_REASON],
  ["insert into model_recordings", "one that is written while its user is being deleted is removed when it expires"],
  ["delete from chat_files", RETENTION_REASON],
  ['delete from "former_usernames" where ("former_usernames"."user_id"', RETENTION_REASON],
  [
    "delete from external_auth_links where provider_id in",
    "a sign-in to an MCP server while its organization is deleted leaves a row that nothing uses",
  ],
  [
    "delete from budget_periods where budget_id in",
    "usage that a call adds during the deletion is deleted when its period is over",
  ],
  ["delete from chat_run_steps", RETENTION_REASON],
  ["delete from chat_runs", RETENTION_REASON],
  ["delete from hook_dispatches", RETENTION_REASON],
  ["delete from trial_diffs", "a completed trial stays completed"],
  ["delete from notifications", RETENTION_REASON],
  ['delete from "app_statuses" where "app_statuses"."agent_id"', ONE_ACTOR_REASON],
  ['delete from "agent_apps"', ONE_ACTOR_REASON],
  ['delete from "agent_log_sources"', ONE_ACTOR_REASON],
  ['delete from "agent_metadata"', ONE_ACTOR_REASON],
  ['delete from "agent_scripts"', ONE_ACTOR_REASON],
  ['update "chats" set "pin_order"', "all chats of a user belong to one shard"],
  ['update "connection_logs"', "a start closes the logs of removed agents, which never reconnect"],
  [
    'delete from "api_keys" where "api_keys"."id" in (select "key_id" from "oauth2_grants" where ("oauth2_grants"."user_id"',
    "an expired grant cannot be renewed: a renewal checks the same time",
  ],
  ['delete from "oauth2_apps"', "a grant updates its application's row, which is then checked again"],
  ['update "organizations" set "updated_at"', NO_GUARD_REASON],
  [
    'update "users" set "deleted" = ? where ("users"."id" = ? and "users"."deleted" = ? and (json_array_length',
    NO_GUARD_REASON,
  ],
  ["insert into timers", "a new workspace reads its template and its owner when its build has completed"],
  ["insert into notifications", "one more notification at the moment a user turns them off does no harm"],
];

type SourceStatement = { readonly text: string; readonly isAlone: boolean };

const isWrite = (text: string): boolean => /^\s*(insert|update|delete)\b/i.test(text);

/** Returns whether a statement reads rows other than those it writes. Data inside the row is read with `json_each`. */
const readsOthers = (text: string): boolean =>
  /\b(from|join)\s+(?!json_each)["\w$]/i.test(text.replace(/^\s*delete\s+from\b/i, "delete"));

const listCompiled = (): SourceStatement[] =>
  compiledTexts.flatMap(({ text, alone }) => {
    try {
      return [{ text: text(), isAlone: alone !== undefined }];
    } catch {
      // A statement of another test in this process, which cannot be compiled.
      return [];
    }
  });

/** Returns the statements in a file as text, with the other fields of their object. */
const listSourceStatements = (file: string): SourceStatement[] => {
  const source = readFileSync(ROOT + file, "utf8");
  return [...source.matchAll(/`(?:[^`\\]|\\.)*`|"(?:[^"\\\n]|\\.)*"/g)].map(({ 0: literal, index }) => {
    const object = source.slice(source.lastIndexOf("{\n", index), source.indexOf("\n}", index));
    return {
      text: literal.slice(1, -1),
      isAlone: /\balone: "/.test(object) && /\bsql:\s*$/.test(source.slice(0, index)),
    };
  });
};

const toOneLine = (text: string): string => text.replace(/\s+/g, " ").trim();

test("[PQ-13] a statement that reads rows other than it writes runs under a lock, or has a documented reason", async () => {
  const files = [...new Bun.Glob("{db,actors,src}/**/*.ts").scanSync({ cwd: ROOT })].filter(
    (file) => !/^db\/(pg|reports|backup|migrations)\/|worker|drizzle\.config|\.d\.ts$/.test(file),
  );
  for (const file of files.filter((file) => file.startsWith("db/"))) await import(ROOT + file);
  await import("#src/context/open.ts");
  const statements = [...listCompiled(), ...files.flatMap(listSourceStatements)]
    .filter(({ text }) => isWrite(text) && readsOthers(text))
    .map(({ text, isAlone }) => ({ text: toOneLine(text), isAlone }));
  const unreviewed = statements.filter(
    ({ text, isAlone }) => !isAlone && !REVIEWED.some(([beginning]) => text.startsWith(beginning)),
  );
  expect(unreviewed.map(({ text }) => text)).toEqual([]);
  const unused = REVIEWED.filter(
    ([beginning]) => !statements.some(({ text, isAlone }) => !isAlone && text.startsWith(beginning)),
  );
  expect(unused.map(([beginning]) => beginning)).toEqual([]);
  expect(statements.filter(({ isAlone }) => isAlone).length).toBeGreaterThan(6);
});

test("[PQ-13] a group takes the locks of all its names, each once and always in the same order", () => {
  const pending = (...names: ((typeof ALONE)[number] | undefined)[]) => ({
    batch: names.map((alone) => ({ sql: "", rows: [[]], ...(alone && { alone }) })),
    rows: 0,
    bytes: 0,
    resolve() {},
    reject() {},
  });
  expect(toLockStatement([pending(undefined), pending()])).toBeUndefined();
  const text = `select pg_advisory_xact_lock(18, ${ALONE.indexOf("templates")}), pg_advisory_xact_lock(18, ${ALONE.indexOf("quota")})`;
  expect(toLockStatement([pending("quota"), pending(undefined, "templates", "quota")])?.text).toBe(text);
});
