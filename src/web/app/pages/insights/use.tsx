// Usage: users by day, hours, apps, templates, and parameter values.
import { useMemo } from "preact/hooks";
import type { TemplateInsights } from "#schema/insights.ts";
import type { Template } from "#schema/templates/template.ts";
import { call } from "../../data/api.ts";
import { formatDuration } from "../../parts/format-time.ts";
import { Plot } from "../../parts/plot/plot.tsx";
import { COUNT, formatChange, formatNumber, formatShare } from "./figures.ts";
import { type PartProps, Report, useDays } from "./part.tsx";
import { Stats } from "./stats.tsx";
import { Table } from "./table.tsx";

type TemplateUsage = { readonly template: Template; readonly peopleCount: number; readonly seconds: number };
type UsageData = {
  readonly usage: TemplateInsights;
  readonly previous: TemplateInsights;
  readonly seconds: number;
  readonly secondsBefore: number;
  readonly templates: readonly TemplateUsage[];
};

/** Maximum number of templates shown separately; each requires its own report. */
const MAX_LISTED = 20;

const sumSeconds = (users: readonly { seconds: number }[]): number =>
  users.reduce((sum, { seconds }) => sum + seconds, 0);

const loadUsage = async ({ range, template }: PartProps): Promise<UsageData> => {
  const query = template ? { template_ids: template } : {};
  const [use, before, activity, activityBefore, templates] = await Promise.all([
    call("GET /insights/templates", { query: { ...range.query, ...query, interval: "day" } }),
    call("GET /insights/templates", { query: { ...range.previousQuery, ...query, interval: "day" } }),
    call("GET /insights/user-activity", { query: { ...range.query, ...query } }),
    call("GET /insights/user-activity", { query: { ...range.previousQuery, ...query } }),
    template ? [] : call("GET /templates"),
  ]);
  const usedIds = new Set(use.report?.template_ids);
  const listedTemplates = templates.filter(({ id }) => usedIds.has(id)).slice(0, MAX_LISTED);
  const templateUsage = await Promise.all(
    listedTemplates.map(async (template) => {
      const { report } = await call("GET /insights/user-activity", {
        query: { ...range.query, template_ids: template.id },
      });
      return { template, peopleCount: report.users.length, seconds: sumSeconds(report.users) };
    }),
  );
  return {
    usage: use,
    previous: before,
    seconds: sumSeconds(activity.report.users),
    secondsBefore: sumSeconds(activityBefore.report.users),
    templates: templateUsage.sort((a, b) => b.seconds - a.seconds),
  };
};

const countPeople = ({ interval_reports = [] }: TemplateInsights): number[] =>
  interval_reports.map(({ active_users }) => active_users);
const getMean = (values: readonly number[]): number =>
  values.length === 0 ? 0 : values.reduce((sum, one) => sum + one, 0) / values.length;

/** Formats the mean of whole numbers. Small values are not rounded to zero. */
const formatMean = (values: readonly number[]): string => {
  const value = getMean(values);
  return value > 0 && value < 0.1 ? "under 0.1" : formatNumber(value);
};

export const UsagePart = (props: PartProps) => {
  const { dates, days, longDays } = useDays(props.range);
  return (
    <Report
      name="use"
      props={props}
      load={() => loadUsage(props)}
      toSheet={({ usage }) => ({
        head: ["date", "people"],
        rows: countPeople(usage).map((people, index) => [dates[index] ?? "", people]),
      })}
    >
      {(data) => (
        <UsageReport data={data} days={days} longDays={longDays} isOneTemplate={props.template !== undefined} />
      )}
    </Report>
  );
};

type UsageReportProps = {
  data: UsageData;
  days: readonly string[];
  longDays: readonly string[];
  isOneTemplate: boolean;
};

const UsageReport = ({ data, days, longDays, isOneTemplate }: UsageReportProps) => {
  const { usage, previous, seconds, secondsBefore, templates } = data;
  const peopleByDay = countPeople(usage);
  const lines = useMemo(() => [{ label: "People", values: peopleByDay }], [data]);
  const apps = (usage.report?.apps_usage ?? []).filter((app) => app.seconds > 0).sort((a, b) => b.seconds - a.seconds);
  return (
    <>
      <Stats
        stats={[
          {
            label: "Users per day",
            value: formatMean(peopleByDay),
            note: formatChange(getMean(peopleByDay), getMean(countPeople(previous))),
          },
          {
            label: "Total users",
            value: formatNumber(usage.report?.active_users ?? 0),
            note: formatChange(usage.report?.active_users ?? 0, previous.report?.active_users ?? 0),
          },
          { label: "Active hours", value: formatNumber(seconds / 3600), note: formatChange(seconds, secondsBefore) },
          { label: "Apps in use", value: formatNumber(apps.length) },
        ]}
      />
      <div class="split even">
        <Plot title="Users per day" days={days} longDays={longDays} lines={lines} measure={COUNT} />
        <Table
          title="Apps"
          head={["App", "Time", "Share", "Sessions"]}
          empty="No apps, terminals or ports were opened in this period."
          rows={apps.map((app) => ({
            key: `${app.type} ${app.slug}`,
            cells: [
              app.display_name || app.slug,
              formatDuration(app.seconds * 1000),
              formatShare(
                app.seconds,
                apps.reduce((sum, one) => sum + one.seconds, 0),
              ),
              formatNumber(app.times_used),
            ],
          }))}
        />
        {isOneTemplate ? (
          <ParameterUsage usage={usage} />
        ) : (
          <Table
            title="Templates"
            head={["Template", "People", "Hours"]}
            empty="No templates were used in this period."
            rows={templates.map(({ template, peopleCount, seconds }) => ({
              key: template.id,
              cells: [
                <a key="name" href={`/templates/${template.id}/insights`}>
                  {template.display_name || template.name}
                </a>,
                formatNumber(peopleCount),
                formatNumber(seconds / 3600),
              ],
            }))}
          />
        )}
      </div>
    </>
  );
};

const ParameterUsage = ({ usage }: { usage: TemplateInsights }) => (
  <Table
    title="Parameters"
    head={["Value", "Workspaces"]}
    empty="No workspaces with parameters were created in this period."
    rows={(usage.report?.parameters_usage ?? []).flatMap((parameter) =>
      parameter.values
        .toSorted((a, b) => b.count - a.count)
        .slice(0, 10)
        .map(({ value, count: workspaces }) => ({
          key: `${parameter.name} ${value}`,
          cells: [
            <span key="name">
              <span class="dim">{parameter.display_name || parameter.name}</span>{" "}
              {parameter.options.find((one) => one.value === value)?.name ?? (value || "empty")}
            </span>,
            formatNumber(workspaces),
          ],
        })),
    )}
  />
);
