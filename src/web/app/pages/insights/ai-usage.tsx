// The cost and usage of model calls from chats and the gateway, by day, user, group, template and more.
import { useSignal } from "@preact/signals";
import { useMemo } from "preact/hooks";
import type { AiUsage, UsageDimension } from "#schema/ai/gateway.ts";
import { call } from "../../data/api.ts";
import { Select } from "../../parts/field.tsx";
import { Plot } from "../../parts/plot/plot.tsx";
import { GatewayCallsPanel } from "./calls.tsx";
import { formatMoney, formatNumber, formatShortCount, MONEY, SHORT_COUNT } from "./figures.ts";
import { type PartProps, Report, useDays } from "./part.tsx";
import { Stats } from "./stats.tsx";
import { Table } from "./table.tsx";

type Row = AiUsage["rows"][number];

const DIMENSIONS: readonly { readonly value: UsageDimension; readonly label: string; readonly none: string }[] = [
  { value: "user", label: "Person", none: "Deleted person" },
  { value: "group", label: "Group", none: "No group" },
  { value: "template", label: "Template", none: "No template" },
  { value: "workspace", label: "Workspace", none: "No workspace" },
  { value: "model", label: "Model", none: "Deleted model" },
  { value: "provider", label: "Provider", none: "Deleted provider" },
  { value: "day", label: "Day", none: "" },
  { value: "kind", label: "Purpose", none: "" },
];
const PURPOSES: Readonly<Record<string, string>> = {
  chat_turn: "Chats",
  title_generation: "Chat titles",
  quickgen: "Short texts",
  compaction: "Summaries of chats",
  gateway: "AI gateway",
};

type UsageProps = PartProps & { readonly user_id?: string };

const loadUsage = ({ range, user_id }: UsageProps, dimension: UsageDimension): Promise<AiUsage> => {
  const { start_time: start_date, end_time: end_date } = range.query;
  return call("GET /ai/usage", {
    query: { start_date, end_date, by: dimension, ...(user_id === undefined ? {} : { user_id }) },
  });
};

/** The usage of everyone the viewer may see, or of one user. */
export const AiUsagePart = (props: UsageProps) => {
  const { user_id = "" } = props;
  return (
    <>
      <Report
        name={`ai-usage by day ${user_id}`}
        props={{ ...props, onSheet: () => {} }}
        load={() => loadUsage(props, "day")}
        toSheet={() => ({ head: [], rows: [] })}
      >
        {({ total, rows }) => (
          <>
            <Totals total={total} />
            <UsageByDay days={rows} range={props.range} />
          </>
        )}
      </Report>
      <Breakdown {...props} />
      <GatewayCallsPanel user_id={props.user_id} />
    </>
  );
};

const Breakdown = (props: UsageProps) => {
  const { user_id } = props;
  const dimension = useSignal<UsageDimension>(user_id === undefined ? "user" : "model");
  const choices = DIMENSIONS.filter(({ value }) => user_id === undefined || (value !== "user" && value !== "group"));
  const { label, none } = DIMENSIONS.find(({ value }) => value === dimension.value) ?? { label: "", none: "" };
  const formatTitle = ({ key, name }: Row): string => {
    if (dimension.value === "kind") return PURPOSES[key] ?? key;
    return name || (dimension.value === "model" || dimension.value === "day" ? key : "") || none;
  };
  return (
    <section class="stack" aria-label="Breakdown">
      <div class="line">
        <Select
          label="Group by"
          value={dimension.value}
          choices={choices}
          onPick={(value) => (dimension.value = value as UsageDimension)}
        />
      </div>
      <Report
        name={`ai-usage ${dimension.value} ${user_id ?? ""}`}
        props={props}
        load={() => loadUsage(props, dimension.value)}
        toSheet={({ rows }) => ({
          head: [
            ...[dimension.value, "id", "calls", "calls_without_price", "input_tokens", "output_tokens"],
            ...["cache_read_tokens", "cache_creation_tokens", "cost_usd"],
          ],
          rows: rows.map((row) => [
            ...[formatTitle(row), row.key, row.request_count, row.unpriced_request_count],
            ...[row.input_tokens, row.output_tokens, row.cache_read_tokens, row.cache_creation_tokens],
            row.total_cost_micros / 1_000_000,
          ]),
        })}
      >
        {({ rows }) => (
          <>
            <Table
              title={`Usage by ${label.toLowerCase()}`}
              head={[label, "Calls", "Input", "Output", "Cached", "Cost"]}
              empty="No model calls in this period."
              rows={rows.map((row) => ({
                key: row.key,
                cells: [
                  formatTitle(row),
                  formatNumber(row.request_count),
                  formatShortCount(row.input_tokens + row.cache_creation_tokens),
                  formatShortCount(row.output_tokens),
                  formatShortCount(row.cache_read_tokens),
                  row.unpriced_request_count === row.request_count ? "no price" : formatMoney(row.total_cost_micros),
                ],
              }))}
            />
            {dimension.value === "group" && rows.length > 1 && (
              <p class="dim small">If a person is in several groups, their calls count in each group.</p>
            )}
          </>
        )}
      </Report>
    </section>
  );
};

const Totals = ({ total }: { total: AiUsage["total"] }) => (
  <Stats
    stats={[
      {
        label: "Cost",
        value: formatMoney(total.total_cost_micros),
        note:
          total.unpriced_request_count > 0 ? `${formatNumber(total.unpriced_request_count)} calls without a price` : "",
      },
      { label: "Calls", value: formatNumber(total.request_count) },
      { label: "Input tokens", value: formatShortCount(total.input_tokens + total.cache_creation_tokens) },
      { label: "Cached input tokens", value: formatShortCount(total.cache_read_tokens) },
      { label: "Output tokens", value: formatShortCount(total.output_tokens) },
    ]}
  />
);

const sumTokens = (row: Row): number =>
  row.input_tokens + row.output_tokens + row.cache_read_tokens + row.cache_creation_tokens;

const UsageByDay = ({ days: rows, range }: { readonly days: readonly Row[] } & Pick<PartProps, "range">) => {
  const { dates, days, longDays } = useDays(range);
  const [cost, tokens] = useMemo(() => {
    const byDay = new Map(rows.map((row) => [row.key, row]));
    const listValues = (getValue: (row: Row) => number): number[] =>
      dates.map((date) => {
        const row = byDay.get(date);
        return row ? getValue(row) : 0;
      });
    return [
      [{ label: "Cost", values: listValues((row) => row.total_cost_micros) }],
      [{ label: "Tokens", values: listValues(sumTokens) }],
    ];
  }, [rows, dates]);
  return (
    <div class="split even">
      <Plot title="Cost" unit="US dollars" days={days} longDays={longDays} lines={cost} measure={MONEY} />
      <Plot title="Tokens" days={days} longDays={longDays} lines={tokens} measure={SHORT_COUNT} />
    </div>
  );
};
