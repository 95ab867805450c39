// The latency between users and their workspaces, and how long each user worked.
import type { UserActivity, UserLatency } from "#schema/insights.ts";
import { call } from "../../data/api.ts";
import { formatNumber } from "./figures.ts";
import { type PartProps, Report } from "./part.tsx";
import { Stats } from "./stats.tsx";
import { Table } from "./table.tsx";

type Row = { readonly name: string; readonly hours: number; readonly p50: number; readonly p95: number };

const loadLatency = async ({ range, template }: PartProps): Promise<Row[]> => {
  const query = { ...range.query, ...(template ? { template_ids: template } : {}) };
  const [latency, activity] = await Promise.all([
    call("GET /insights/user-latency", { query }),
    call("GET /insights/user-activity", { query }),
  ]);
  return toRows(latency, activity);
};

const toRows = (latency: UserLatency, activity: UserActivity): Row[] => {
  const hours = new Map(activity.report.users.map(({ user_id, seconds }) => [user_id, seconds / 3600]));
  return latency.report.users
    .map(({ user_id, username, latency_ms }) => ({ name: username, hours: hours.get(user_id) ?? 0, ...latency_ms }))
    .sort((a, b) => b.p50 - a.p50 || (a.name < b.name ? -1 : 1));
};

const formatMs = (value: number): string => (value < 0 ? "–" : `${Math.round(value)} ms`);

const getMedian = (values: readonly number[]): number => values.toSorted((a, b) => a - b)[values.length >> 1] ?? -1;

export const Latency = (props: PartProps) => (
  <Report
    name="latency"
    props={props}
    load={() => loadLatency(props)}
    toSheet={(rows) => ({
      head: ["user", "hours", "p50_ms", "p95_ms"],
      rows: rows.map(({ name, hours, p50, p95 }) => [
        ...[name, Math.round(hours * 10) / 10],
        ...[p50 < 0 ? null : p50, p95 < 0 ? null : p95],
      ]),
    })}
  >
    {(rows) => {
      const measured = rows.filter(({ p50 }) => p50 >= 0);
      return (
        <>
          <Stats
            stats={[
              {
                label: "People measured",
                value: formatNumber(measured.length),
                note: `of ${formatNumber(rows.length)}`,
              },
              { label: "Typical median", value: formatMs(getMedian(measured.map(({ p50 }) => p50))) },
              { label: "Highest median", value: formatMs(measured[0]?.p50 ?? -1), note: measured[0]?.name ?? "" },
            ]}
          />
          <Table
            title="People"
            head={["Person", "Hours", "Median", "p95"]}
            empty="No workspace connections in this period."
            rows={rows.map(({ name, hours, p50, p95 }) => ({
              key: name,
              cells: [name, formatNumber(hours), formatMs(p50), formatMs(p95)],
            }))}
          />
        </>
      );
    }}
  </Report>
);
