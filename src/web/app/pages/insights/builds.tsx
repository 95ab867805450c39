// Build statistics: count, success rate and duration.
import { useMemo } from "preact/hooks";
import type { BuildInsights } from "#schema/insights.ts";
import { call } from "../../data/api.ts";
import { formatDuration } from "../../parts/format-time.ts";
import { Plot } from "../../parts/plot/plot.tsx";
import { COUNT, formatChange, formatNumber, formatShare, TIME } from "./figures.ts";
import { type PartProps, Report, useDays } from "./part.tsx";
import { Stats } from "./stats.tsx";
import { Table } from "./table.tsx";

type BuildData = { readonly current: BuildInsights["report"]; readonly previous: BuildInsights["report"] };
type BuildFigures = Pick<BuildInsights["report"], "builds" | "failed" | "canceled" | "p50_ms" | "p95_ms">;

const loadBuilds = async ({ range, template }: PartProps): Promise<BuildData> => {
  const query = { interval: "day", ...(template ? { template_ids: template } : {}) };
  const [now, before] = await Promise.all([
    call("GET /insights/builds", { query: { ...range.query, ...query } }),
    call("GET /insights/builds", { query: { ...range.previousQuery, ...query } }),
  ]);
  return { current: now.report, previous: before.report };
};

const countSucceeded = ({ builds, failed, canceled }: BuildFigures): number => builds - failed - canceled;
const formatBuildTime = (ms: number | null): string => (ms === null ? "–" : formatDuration(ms));

export const Builds = (props: PartProps) => {
  const { dates } = useDays(props.range);
  return (
    <Report
      name="builds"
      props={props}
      load={() => loadBuilds(props)}
      toSheet={({ current }) => ({
        head: ["date", "builds", "failed", "canceled", "p50_ms", "p95_ms"],
        rows: current.intervals.map((one, index) => [
          ...[dates[index] ?? "", one.builds, one.failed, one.canceled],
          ...[one.p50_ms, one.p95_ms],
        ]),
      })}
    >
      {(data) => <BuildReport data={data} {...props} />}
    </Report>
  );
};

const BuildReport = ({ data, range, template }: PartProps & { data: BuildData }) => {
  const { current, previous } = data;
  const { days, longDays } = useDays(range);
  const timeLines = useMemo(
    () => [
      { label: "Median", values: current.intervals.map(({ p50_ms }) => p50_ms) },
      { label: "p95", values: current.intervals.map(({ p95_ms }) => p95_ms) },
    ],
    [data],
  );
  const resultLines = useMemo(
    () => [
      { label: "Succeeded", values: current.intervals.map(countSucceeded) },
      { label: "Failed", values: current.intervals.map(({ failed }) => failed) },
    ],
    [data],
  );
  return (
    <>
      <Stats
        stats={[
          { label: "Builds", value: formatNumber(current.builds), note: formatChange(current.builds, previous.builds) },
          {
            label: "Succeeded",
            value: formatShare(countSucceeded(current), current.builds),
            note: current.failed > 0 ? `${formatNumber(current.failed)} failed` : "",
          },
          {
            label: "Median",
            value: formatBuildTime(current.p50_ms),
            note: formatChange(current.p50_ms ?? 0, previous.p50_ms ?? 0),
          },
          {
            label: "95th percentile",
            value: formatBuildTime(current.p95_ms),
            note: formatChange(current.p95_ms ?? 0, previous.p95_ms ?? 0),
          },
        ]}
      />
      <div class="split even">
        <Plot title="Build time" days={days} longDays={longDays} lines={timeLines} measure={TIME} />
        <Plot title="Builds per day" days={days} longDays={longDays} lines={resultLines} measure={COUNT} />
        {template === undefined && (
          <Table
            title="Templates"
            head={["Template", "Builds", "Succeeded", "Median", "p95"]}
            empty="No workspaces were started in this period."
            rows={current.templates.map((one) => ({
              key: one.template_id,
              cells: [
                one.name ? (
                  <a key="name" href={`/templates/${one.template_id}/insights`}>
                    {one.display_name || one.name}
                  </a>
                ) : (
                  <span class="dim">Deleted template</span>
                ),
                formatNumber(one.builds),
                <span key="worked" class={countSucceeded(one) / one.builds < 0.95 ? "t-bad" : undefined}>
                  {formatShare(countSucceeded(one), one.builds)}
                </span>,
                formatBuildTime(one.p50_ms),
                formatBuildTime(one.p95_ms),
              ],
            }))}
          />
        )}
      </div>
    </>
  );
};
