// How a search of the audit log runs: which parts of indexes it reads, that the result equals that of a full scan, and that it reads no
// other entries.
import { Database } from "bun:sqlite";
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { join } from "node:path";
import { openLocalStore } from "#db/engine/local.ts";
import { type AuditSearch, auditReport, MAX_AUDIT_COUNT } from "#db/reports/audit/find.ts";
import {
  type AuditFilter,
  type Kind,
  listEntityRuns,
  toConditions,
  toFirstBound,
  toIndexRange,
  toNextStep,
} from "#db/reports/audit/plan.ts";
import { tempDirectory } from "#test/support/server.ts";

type FoundEntries = { keys: number[]; count: number };

describe("the plan", () => {
  test("[AU-11] a search by user, organization or kind uses the index with these columns before the time column", () => {
    const kind = { resource_type: "user", action: "write" } as const;
    const cases: [AuditFilter, string, (string[] | undefined)[]][] = [
      [{}, "audit_logs_time", []],
      [{ from: 1, to: 2 }, "audit_logs_time", []],
      [kind, "audit_logs_kind", []],
      [{ build_reason: "autostart" }, "audit_logs_kind", []],
      [{ organization_id: "a", ...kind }, "audit_logs_organization", [["a"]]],
      [{ within: ["a", "b", "a"] }, "audit_logs_organization", [["a", "b"]]],
      [{ organization_id: "b", within: ["a", "b"] }, "audit_logs_organization", [["b"]]],
      [{ organization_id: "c", within: ["a", "b"] }, "audit_logs_organization", [[]]],
      [{ user_ids: ["x"], ...kind }, "audit_logs_user", [["x"], undefined]],
      [{ user_ids: [], within: ["a"] }, "audit_logs_user", [[], ["a"]]],
    ];
    for (const [filter, index, values] of cases) {
      const range = toIndexRange(filter);
      expect([range.index, ...range.leading.map((column) => column.values)]).toEqual([index, ...values]);
      expect(listEntityRuns(filter)).toEqual([]);
    }
  });

  test("[AU-11] for one object, conditions that its index does not cover are checked in the rows", () => {
    const filter: AuditFilter = { resource_target: "Dev", user_ids: ["x"], within: ["a"], action: "stop", from: 3 };
    const runs = listEntityRuns(filter);
    expect(runs).toEqual([{ index: "audit_logs_target", where: [["lower(resource_target)", "dev"]] }]);
    expect(toConditions(filter, runs)).toEqual([
      { column: "user_id", values: ["x"] },
      { column: "organization_id", values: ["a"] },
      { column: "action", values: ["stop"] },
    ]);
    expect(toConditions(filter, [])).toHaveLength(4);
  });

  test("[AU-11] a scan over kinds visits each requested kind once and skips the others", () => {
    const kinds: Kind[] = [
      "api_key login ",
      "chat create ",
      "workspace_build start autostart",
      "workspace_build start cli",
    ]
      .concat(["workspace_build stop autostop", "workspace_build stop cli", "workspace write "])
      .map((words) => words.split(" ") as unknown as Kind)
      .sort()
      .reverse();
    const isBelow = (kind: Kind, [type, action, reason, time]: ReturnType<typeof toFirstBound>) =>
      kind[0] !== type
        ? kind[0] < type
        : kind[1] !== action
          ? kind[1] < action
          : kind[2] !== reason
            ? kind[2] < reason
            : time > 0;
    const parts = [undefined, "workspace_build", "chat", "nothing"];
    let lookups = 0;
    for (const type of parts) {
      for (const action of [undefined, "start", "stop", "write", "a"]) {
        for (const reason of [undefined, "", "cli", "z"]) {
          const pattern = [type, action, reason] as const;
          const matched: Kind[] = [];
          for (let bound: ReturnType<typeof toFirstBound> | undefined = toFirstBound(pattern); bound; lookups++) {
            const currentBound = bound;
            const match = kinds.find((kind) => isBelow(kind, currentBound));
            if (!match) break;
            const step = toNextStep(pattern, match);
            if (step.matches) matched.push(match);
            bound = step.bound;
          }
          expect(matched).toEqual(kinds.filter((kind) => kind.every((word, n) => (pattern[n] ?? word) === word)));
        }
      }
    }
    expect(lookups).toBeLessThan(parts.length * 5 * 4 * kinds.length);
  });
});

describe("a log of 12,000 entries", () => {
  const directory = tempDirectory();
  let db: Database;
  const ENTRIES = 12_000;

  /**
   * Two users with many entries and different actions, an organization with the entries of one of them, and a name on every third entry.
   */
  beforeAll(async () => {
    const store = openLocalStore({ directory: directory.path, cacheMb: 4, now: 0, fatal: () => {} });
    await store.close();
    db = new Database(join(directory.path, "slipway.db"), { readwrite: true });
    db.run(`insert into audit_logs (id, time, organization_id, user_id, user_agent, action, resource_type, resource_id, resource_target,
        build_reason, diff, additional_fields, status_code, request_id)
      with recursive n(n) as (select 0 union all select n + 1 from n where n < ${ENTRIES - 1})
      select 'id-' || n, n / 3, iif(n % 7 = 0, null, 'org-' || iif(n % 2, 9, n % 5)),
        case when n % 2 then 'robot' when n % 4 then 'ann' else 'user-' || (n % 11) end, '',
        iif(n % 2, iif(n % 3, 'start', 'stop'), iif(n % 5, 'write', 'create')), iif(n % 2, 'workspace_build', iif(n % 6, 'template', 'chat')),
        'thing-' || (n % 900), iif(n % 3, 'name-' || (n % 900), 'Dev'), iif(n % 2, iif(n % 3, 'autostart', 'autostop'), ''), '{}', '{}', 200,
        'request-' || n from n`);
  });
  afterAll(() => {
    db.close();
    directory[Symbol.dispose]();
  });

  const find = (search: AuditSearch): FoundEntries => JSON.parse(auditReport(db, search)) as FoundEntries;

  /** Finds the entries by scanning every row. */
  const scanRows = (filter: AuditFilter): { time: number; key: number }[] => {
    const { from = 0, to = 9e15, user_ids, within, resource_target, ...exactMatches } = filter;
    const inList = (column: string, values: readonly string[] | undefined) =>
      values === undefined ? "true" : `${column} in (${values.map((value) => `'${value}'`).join(",")})`;
    const conditions = [
      ...Object.entries(exactMatches).map(([column, value]) =>
        inList(column, value === undefined ? undefined : [String(value)]),
      ),
      ...[inList("user_id", user_ids), inList("organization_id", within), `time between ${from} and ${to}`],
      inList("lower(resource_target)", resource_target === undefined ? undefined : [resource_target.toLowerCase()]),
    ];
    const text = `select time, key from audit_logs not indexed where ${conditions.join(" and ")} order by time desc, key desc`;
    return db.prepare(text).all() as { time: number; key: number }[];
  };

  const FILTERS: AuditFilter[] = [
    ...[{}, { from: 100, to: 4000 }, { resource_type: "chat" }, { resource_type: "template", action: "write" }],
    ...[
      { action: "stop" },
      { action: "stop", to: 500 },
      { build_reason: "autostart" },
      { build_reason: "autostart", action: "stop" },
    ],
    ...[{ user_ids: ["robot"] }, { user_ids: ["ann", "robot"] }, { user_ids: [] }, { user_ids: ["unknown"] }],
    ...[
      { user_ids: ["robot"], resource_type: "template" },
      { user_ids: ["ann"], action: "create", from: 2000 },
    ],
    ...[{ user_ids: ["robot"], within: ["org-2"] }, { within: ["org-9"] }, { within: ["org-0", "org-2", "org-4"] }],
    ...[
      { within: ["org-0", "org-9"], resource_type: "chat" },
      { organization_id: "org-2", within: ["org-9"] },
    ],
    ...[
      { organization_id: "org-2", user_ids: ["user-4", "ann"] },
      { resource_id: "thing-8" },
      { request_id: "request-77" },
    ],
    ...[
      { resource_id: "thing-8", action: "start" },
      { request_id: "request-77", user_ids: ["robot"] },
    ],
    ...[
      { resource_target: "DEV" },
      { resource_target: "dev", user_ids: ["user-8"] },
      { resource_target: "dev", action: "stop" },
    ],
    ...[
      { resource_target: "dev", user_ids: ["robot"], resource_type: "chat" },
      { resource_target: "dev", within: ["org-2"] },
    ],
    ...[
      { resource_target: "dev", user_ids: ["robot"], to: 2500 },
      { resource_target: "dev", build_reason: "autostart" },
    ],
    ...[
      { resource_target: "dev", resource_id: "thing-9" },
      { resource_target: "name-8", resource_id: "thing-8" },
    ],
  ] as AuditFilter[];

  test("[AU-11] pages and counts match a scan of every row, for any filter and any starting point", () => {
    for (const filter of FILTERS) {
      const rows = scanRows(filter);
      const keys = rows.map(({ key }) => key);
      const middle = rows[Math.floor(rows.length / 2)];
      const pages: [AuditSearch, number[]][] = [
        [{ filter, limit: 25, counted: true }, keys.slice(0, 25)],
        [{ filter, limit: 30, offset: 40, counted: true }, keys.slice(40, 70)],
        [{ filter, limit: 10_000, counted: true }, keys.slice(0, 10_000)],
        [{ filter, limit: 25, offset: Number.MAX_SAFE_INTEGER, counted: true }, []],
      ];
      if (middle) {
        const offset = Math.floor(rows.length / 2) + 1;
        pages.push([{ filter, limit: 25, cursor: middle, counted: true }, keys.slice(offset, offset + 25)]);
      }
      for (const [search, expected] of pages) {
        const page = find(search);
        expect([filter, page.keys]).toEqual([filter, expected]);
        expect([search, page.count]).toEqual([search, Math.min(rows.length, MAX_AUDIT_COUNT + 1)]);
      }
    }
  });

  test("[AU-11] pages by cursor follow each other without gaps", () => {
    const filter: AuditFilter = { within: ["org-0", "org-9"], from: 1000 };
    const rows = scanRows(filter);
    const timeOf = new Map(rows.map(({ key, time }) => [key, time]));
    const pagedKeys: number[] = [];
    for (let page = find({ filter, limit: 137 }); page.keys.length > 0; ) {
      expect(page.count).toBe(0);
      pagedKeys.push(...page.keys);
      const key = pagedKeys.at(-1) as number;
      page = find({ filter, limit: 137, cursor: { key, time: timeOf.get(key) as number } });
    }
    expect(pagedKeys).toEqual(rows.map(({ key }) => key));
  });

  test("[AU-11] no statement sorts entries, scans a whole index or reads rows for what indexes contain", () => {
    const texts = new Set<string>();
    const recordText = (text: string): string => {
      texts.add(text);
      return text;
    };
    const recordingDatabase = {
      query: (text: string) => db.query(recordText(text)),
      prepare: (text: string) => db.prepare(recordText(text)),
    } as unknown as Database;
    for (const filter of FILTERS) {
      auditReport(recordingDatabase, { filter, limit: 25, counted: true });
      auditReport(recordingDatabase, { filter, limit: 25, cursor: { time: 2000, key: 6000 }, counted: true });
    }
    expect(texts.size).toBeGreaterThan(20);
    const byTime = "INDEX audit_logs_time";
    for (const text of texts) {
      const steps = (db.query(`explain query plan ${text}`).all() as { detail: string }[]).map(({ detail }) => detail);
      // Rows are read only if the index of the requested entity does not contain a column. A search without a filter scans the time index.
      const isOfEntity = /audit_logs_(target|resource|request)|lower\(resource_target\)/.test(text);
      const problems = steps.filter(
        (step) =>
          step.includes("TEMP B-TREE FOR ORDER") ||
          step.includes("AUTOMATIC") ||
          (step.startsWith("SCAN audit_logs") && !step.includes(byTime) && !step.includes("audit_logs_kind")) ||
          (step.includes("USING INDEX") && !isOfEntity),
      );
      expect([text, problems]).toEqual([text, []]);
    }
  });
});
