// Number, results and durations of builds in a range, by time interval or by template. For `store.scan`.
import { PREBUILDS_USER_ID } from "#schema/workspaces/prebuilds.ts";
import type { Query } from "../engine/sql.ts";

/** Times in milliseconds, [from, to); `step` is the length of an interval; `templates` undefined: all. */
export type FigureRange = {
  readonly from: number;
  readonly to: number;
  readonly step: number;
  /** When daylight saving moves clocks by `forward`. */
  readonly changed_at: number;
  readonly forward: number;
  readonly templates: readonly string[] | undefined;
};

export type BuildFigures = {
  readonly builds: number;
  readonly failed: number;
  readonly canceled: number;
  /** The median duration of successful builds since they were requested, by nearest rank; null without any. */
  readonly p50_ms: number | null;
  readonly p95_ms: number | null;
};

/** The group key: the number of an interval, a template's ID, or a constant for everything. */
const GROUPS = {
  interval: "(jobs.completed_at - ?1 + case when jobs.completed_at >= ?4 then ?5 else 0 end) / ?3",
  template: "w.template_id",
  all: "0",
} as const;

const toSql = (group: string): string => `
  with ended as (
    select ${group} as slot,
      case when jobs.error <> '' and jobs.canceled_at is null then 1 else 0 end as failed,
      case when jobs.canceled_at is not null then 1 else 0 end as canceled,
      case when jobs.error = '' and jobs.canceled_at is null then jobs.completed_at - jobs.started_at end as ms
    from jobs
    join workspace_builds b on b.job_id = jobs.id
    join workspaces w on w.id = b.workspace_id
    where jobs.completed_at >= ?1 and jobs.completed_at < ?2 and b.transition = 'start' and b.initiator_id <> ?6
      and (?7 = '' or w.template_id in (select value from json_each(?8)))
  ), ranked as (
    select slot, failed, canceled, ms,
      row_number() over (partition by slot order by case when ms is null then 1 else 0 end, ms) as place,
      count(ms) over (partition by slot) as worked
    from ended
  )
  select slot, count(*), sum(failed), sum(canceled),
    max(case when place = (worked * 50 + 99) / 100 then ms end),
    max(case when place = (worked * 95 + 99) / 100 then ms end)
  from ranked group by slot order by slot`;

/** Builds that started workspaces of people, excluding prebuilds. One row per group with any. */
export const sumBuilds = (
  by: keyof typeof GROUPS,
  { from, to, step, templates, changed_at, forward }: FigureRange,
): Query<BuildFigures & { readonly slot: string }> => ({
  sql: toSql(GROUPS[by]),
  params: [
    ...[from, to, step, changed_at, forward],
    ...[PREBUILDS_USER_ID, templates ? "some" : "", JSON.stringify(templates ?? [])],
  ],
  map: ([slot, builds, failed, canceled, p50, p95]) => ({
    slot: String(slot),
    builds: Number(builds),
    failed: Number(failed),
    canceled: Number(canceled),
    p50_ms: p50 === null || p50 === undefined ? null : Number(p50),
    p95_ms: p95 === null || p95 === undefined ? null : Number(p95),
  }),
});
