// Build statistics: count, success rate and duration.
import { useMemo } from "preact/hooks";
import type { BuildInsights } from "#schema/insights.ts";
import { call } from "../../data/api.ts";
import { formatDuration } from "../../parts/format-time.ts";
import { Plot } from "../../parts/plot/plot.tsx";
import { COUNT, count, formatChange, formatShare, TIME } from "./figures.ts";
import { type PartProps, Report, useDays } from "./part.tsx";
import { Stats } from "./stats.tsx";
import { Table } from "./table.tsx";

type Data = { readonly now: BuildInsights["report"]; readonly before: BuildInsights["report"] };
type BuildFigures = Pick<BuildInsights["report"], "builds" | "failed" | "canceled" | "p50_ms" | "p95_ms">;

const read = async ({ range, template }: PartProps): Promise<Data> => {
  const query = { interval: "day", ...(template ? { template_ids: template } : {}) };
  const [now, before] = await Promise.all([
    call("GET /insights/builds", { query: { ...range.query, ...query } }),
    call("GET /insights/builds", { query: { ...range.before, ...query } }),
  ]);
  return { now: now.report, before: before.report };
};

const countSucceeded = ({ builds, failed, canceled }: BuildFigures): number => builds - failed - canceled;
const formatTime = (ms: number | null): string => (ms === null ? "–" : formatDuration(ms));

export const Builds = (props: PartProps) => {
  const { dates } = useDays(props.range);
  return (
    <Report
      name="builds"
      props={props}
      read={() => read(props)}
      sheetOf={({ now }) => ({
        head: ["date", "builds", "failed", "canceled", "p50_ms", "p95_ms"],
        rows: now.intervals.map((one, at) => [
          ...[dates[at] ?? "", one.builds, one.failed, one.canceled],
          ...[one.p50_ms, one.p95_ms],
        ]),
      })}
    >
      {(data) => <BuildReport data={data} {...props} />}
    </Report>
  );
};

const BuildReport = ({ data, range, template }: PartProps & { data: Data }) => {
  const { now, before } = data;
  const { days, longDays } = useDays(range);
  const times = useMemo(
    () => [
      { label: "Median", values: now.intervals.map(({ p50_ms }) => p50_ms) },
      { label: "p95", values: now.intervals.map(({ p95_ms }) => p95_ms) },
    ],
    [data],
  );
  const ends = useMemo(
    () => [
      { label: "Succeeded", values: now.intervals.map(countSucceeded) },
      { label: "Failed", values: now.intervals.map(({ failed }) => failed) },
    ],
    [data],
  );
  return (
    <>
      <Stats
        stats={[
          { label: "Builds", value: count(now.builds), note: formatChange(now.builds, before.builds) },
          {
            label: "Succeeded",
            value: formatShare(countSucceeded(now), now.builds),
            note: now.failed > 0 ? `${count(now.failed)} failed` : "",
          },
          { label: "Median", value: formatTime(now.p50_ms), note: formatChange(now.p50_ms ?? 0, before.p50_ms ?? 0) },
          {
            label: "95th percentile",
            value: formatTime(now.p95_ms),
            note: formatChange(now.p95_ms ?? 0, before.p95_ms ?? 0),
          },
        ]}
      />
      <div class="split even">
        <Plot title="Build time" days={days} longDays={longDays} lines={times} measure={TIME} />
        <Plot title="Builds per day" days={days} longDays={longDays} lines={ends} measure={COUNT} />
        {template === undefined && (
          <Table
            title="Templates"
            head={["Template", "Builds", "Succeeded", "Median", "p95"]}
            empty="No workspaces were started in this period."
            rows={now.templates.map((one) => ({
              key: one.template_id,
              cells: [
                one.name ? (
                  <a key="name" href={`/templates/${one.template_id}/insights`}>
                    {one.display_name || one.name}
                  </a>
                ) : (
                  <span class="dim">Deleted template</span>
                ),
                count(one.builds),
                <span key="worked" class={countSucceeded(one) / one.builds < 0.95 ? "t-bad" : undefined}>
                  {formatShare(countSucceeded(one), one.builds)}
                </span>,
                formatTime(one.p50_ms),
                formatTime(one.p95_ms),
              ],
            }))}
          />
        )}
      </div>
    </>
  );
};
