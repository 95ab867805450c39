// Rows of usage: incoming minutes, and the packed rows they are aggregated into. Written only by actors/usage; read by its aggregation and,
// in reader Workers, by the insights reports (db/reports/usage/reports.ts).

import { and, lte, sql } from "drizzle-orm";
import { PREBUILDS_USER_ID } from "#schema/workspaces/prebuilds.ts";
import { build, eqParam, type Query, query, type ReportName, type Statement } from "../../engine/sql.ts";
import { agent_apps } from "../../schema/agents.ts";
import { usage_details, usage_keys, usage_latencies, usage_minutes } from "../../schema/usage.ts";
import { workspaces } from "../../schema/workspaces.ts";
import { BLOCK, toBlock } from "./block.ts";
import type { KeyKind } from "./keys.ts";
import type { ReportArgs } from "./reports.ts";

/** Creates keys for new names. */
export const insertUsageKeys = (names: readonly { kind: KeyKind; name: string }[]): Statement => ({
  touches: [],
  sql: "insert or ignore into usage_keys (kind, name) values (?, ?)",
  rows: names.map(({ kind, name }) => [kind, name]),
});

/** Keys by name: {kind, names}, a JSON array. */
export const listUsageKeys = query(
  build
    .select({ key: usage_keys.key, name: usage_keys.name })
    .from(usage_keys)
    .where(
      and(
        eqParam(usage_keys.kind),
        sql`${usage_keys.name} in (select value from json_each(${sql.placeholder("names")}))`,
      ),
    ),
);

export type MinutesRow = { bucket: number; user: number; template: number; app: number; mask: number };
export type LatencyRow = { bucket: number; user: number; template: number; ms: number; count: number };

/** Counts writes per block (rule IN-13). */
const countWrites = (blocks: readonly number[]): Statement => ({
  touches: [],
  sql: `insert into usage_blocks (block, version) values (?, 1) on conflict (block) do update set version = usage_blocks.version + 1`,
  rows: [...new Set(blocks)].map((block) => [block]),
});

const getBlock = ({ bucket }: { bucket: number }): number => Math.floor(bucket / BLOCK);

/** Adds minutes to existing ones. A minute counts once. */
export const addMinutes = (rows: readonly MinutesRow[]): readonly Statement[] => [
  {
    touches: [],
    sql: `insert into usage_minutes (bucket, "user", template, app, mask) values (?, ?, ?, ?, ?)
      on conflict (bucket, "user", template, app) do update set mask = usage_minutes.mask | excluded.mask`,
    rows: rows.map(({ bucket, user, template, app, mask }) => [bucket, user, template, app, mask]),
  },
  countWrites(rows.map(getBlock)),
];

export const addLatencies = (rows: readonly LatencyRow[]): readonly Statement[] => [
  {
    touches: [],
    sql: `insert into usage_latencies (bucket, "user", template, ms, "count") values (?, ?, ?, ?, ?)
      on conflict (bucket, "user", template, ms) do update set "count" = usage_latencies."count" + excluded."count"`,
    rows: rows.map(({ bucket, user, template, ms, count }) => [bucket, user, template, ms, count]),
  },
  countWrites(rows.map(getBlock)),
];

/** Owner and template of workspaces: {ids}, a JSON array. */
export const listUsedWorkspaces = query(
  build
    .select({ id: workspaces.id, owner_id: workspaces.owner_id, template_id: workspaces.template_id })
    .from(workspaces)
    .where(sql`${workspaces.id} in (select value from json_each(${sql.placeholder("ids")}))`),
);

/** Names of agents' apps: {agent_ids}, a JSON array. */
export const listUsedApps = query(
  build
    .select({
      agent_id: agent_apps.agent_id,
      slug: agent_apps.slug,
      display_name: agent_apps.display_name,
      icon: agent_apps.icon,
    })
    .from(agent_apps)
    .where(sql`${agent_apps.agent_id} in (select value from json_each(${sql.placeholder("agent_ids")}))`),
);

/** Maximum rows aggregated at a time. */
const MAX_AGGREGATED_ROWS = 4_000;

/** The oldest minutes up to a bucket. Parameters: {bucket}. For `scan`. */
export const listMinutes = query(
  build
    .select()
    .from(usage_minutes)
    .where(lte(usage_minutes.bucket, sql.placeholder("bucket")))
    .orderBy(usage_minutes.bucket, usage_minutes.user, usage_minutes.template, usage_minutes.app)
    .limit(MAX_AGGREGATED_ROWS),
);

/** The oldest latencies up to a bucket. Parameters: {bucket}. For `scan`. */
export const listLatencies = query(
  build
    .select()
    .from(usage_latencies)
    .where(lte(usage_latencies.bucket, sql.placeholder("bucket")))
    .orderBy(usage_latencies.bucket, usage_latencies.user, usage_latencies.template)
    .limit(MAX_AGGREGATED_ROWS),
);

/** Packed rows: {ids}, a JSON array. */
export const listDetails = query(
  build
    .select()
    .from(usage_details)
    .where(sql`${usage_details.id} in (select value from json_each(${sql.placeholder("ids")}))`),
);

/** Deletes aggregated minutes. Each must be unchanged since it was read. */
export const removeMinutes = (rows: readonly MinutesRow[]): Statement => ({
  sql: 'delete from usage_minutes where bucket = ? and "user" = ? and template = ? and app = ? and mask = ?',
  rows: rows.map(({ bucket, user, template, app, mask }) => [bucket, user, template, app, mask]),
  expect: 1,
});

export const removeLatencies = (rows: readonly LatencyRow[]): Statement => ({
  sql: 'delete from usage_latencies where bucket = ? and "user" = ? and template = ? and ms = ? and "count" = ?',
  rows: rows.map(({ bucket, user, template, ms, count }) => [bucket, user, template, ms, count]),
  expect: 1,
});

/** Replaces packed rows. */
export const savePacked = (
  rows: readonly { id: number; digest: Uint8Array; detail: Uint8Array }[],
): readonly Statement[] => [
  {
    touches: [],
    sql: "insert into usage_digests (id, digest) values (?, ?) on conflict (id) do update set digest = excluded.digest",
    rows: rows.map(({ id, digest }) => [id, digest]),
  },
  {
    touches: [],
    sql: "insert into usage_details (id, detail) values (?, ?) on conflict (id) do update set detail = excluded.detail",
    rows: rows.map(({ id, detail }) => [id, detail]),
  },
  countWrites(rows.map(({ id }) => toBlock(id))),
];

/** The JSON text of a report. For `scan`, which computes it in a reader. */
export const usageReport = (report: ReportName, args: ReportArgs): Query<string> => ({
  report,
  sql: "",
  params: [JSON.stringify(args)],
  map: ([text]) => String(text),
});

/**
 * How many users changed to and from a status, per quarter of an hour, with everything before `from` combined. Parameters: {from, to}.
 * For `scan`.
 */
export const listStatusChanges = query(
  build
    .select({
      status: sql<string>`status`.as("status"),
      at: sql<number>`quarter * 900000`.as("at"),
      change: sql<number>`sum(step)`.as("change"),
    })
    .from(
      sql`(select status, step, max((at + 899999) / 900000, ${sql.placeholder("from")} / 900000) as quarter from (
        select status, 1 as step, at from user_status_changes
        where user_id <> ${PREBUILDS_USER_ID} and at <= ${sql.placeholder("to")}
        union all
        select before, -1, at from (
          select at, user_id, lag(status) over (partition by user_id order by at, id) as before from user_status_changes
        ) where before is not null and user_id <> ${PREBUILDS_USER_ID} and at <= ${sql.placeholder("to")}))`,
    )
    .groupBy(sql`status`, sql`quarter`),
);
