// Chat statistics: users, tokens by model, and cost.
import { useMemo } from "preact/hooks";
import type { UserCosts } from "#schema/chats/chat-cost.ts";
import type { ChatInsights } from "#schema/insights.ts";
import { call } from "../../data/api.ts";
import { isSiteOwner } from "../../data/session.ts";
import { Plot } from "../../parts/plot/plot.tsx";
import { COUNT, count, formatChange, formatMoney, formatShortCount, MONEY, SHORT_COUNT } from "./figures.ts";
import { type PartProps, Report, useDays } from "./part.tsx";
import { Stats } from "./stats.tsx";
import { Table } from "./table.tsx";

type Data = {
  readonly now: ChatInsights["report"];
  readonly before: ChatInsights["report"];
  /** Top spenders; only for owners. */
  readonly spenders: UserCosts["users"];
};

const MAX_SPENDERS = 10;
/** A plot has at most four colors. */
const MAX_LINES = 4;

type TokenCounts = Pick<
  ChatInsights["report"],
  "input_tokens" | "output_tokens" | "cache_read_tokens" | "cache_creation_tokens"
>;
const sumTokens = (used: TokenCounts): number =>
  used.input_tokens + used.output_tokens + used.cache_read_tokens + used.cache_creation_tokens;

const read = async ({ range }: PartProps): Promise<Data> => {
  const [now, before, costs] = await Promise.all([
    call("GET /insights/chats", { query: { ...range.query, interval: "day" } }),
    call("GET /insights/chats", { query: { ...range.before, interval: "day" } }),
    isSiteOwner.value
      ? call("GET /chats/cost/users", {
          query: { start_date: range.query.start_time, end_date: range.query.end_time, limit: MAX_SPENDERS },
        })
      : undefined,
  ]);
  return { now: now.report, before: before.report, spenders: costs?.users ?? [] };
};

export const Chats = (props: PartProps) => {
  const { dates } = useDays(props.range);
  return (
    <Report
      name="chats"
      props={props}
      read={() => read(props)}
      sheetOf={({ now }) => ({
        head: [
          ...["date", "people", "chats", "calls", "input_tokens", "output_tokens", "cache_read_tokens"],
          ...["cache_creation_tokens", "cost_usd"],
        ],
        rows: now.intervals.map((one, at) => [
          ...[dates[at] ?? "", one.users, one.chats, one.request_count, one.input_tokens, one.output_tokens],
          ...[one.cache_read_tokens, one.cache_creation_tokens, one.total_cost_micros / 1_000_000],
        ]),
      })}
    >
      {(data) => <ChatReport data={data} {...props} />}
    </Report>
  );
};

const formatName = (model: ChatInsights["report"]["models"][number]): string =>
  model.display_name || model.model || `Deleted model ${model.model_config_id.slice(0, 4)}`;

const ChatReport = ({ data, range }: PartProps & { data: Data }) => {
  const { now, before, spenders } = data;
  const { days, longDays } = useDays(range);
  const tokens = useMemo(() => {
    const values = (model: (typeof now.models)[number]) => model.intervals.map((one) => one.tokens);
    if (now.models.length === 0) return [{ label: "No model", values: now.intervals.map(() => 0) }];
    const listed = now.models.length > MAX_LINES ? now.models.slice(0, MAX_LINES - 1) : now.models;
    const rest = now.models.slice(listed.length);
    return [
      ...listed.map((model) => ({ label: formatName(model), values: values(model) })),
      ...(rest.length === 0
        ? []
        : [
            {
              label: `${rest.length} more`,
              values: now.intervals.map((_, at) =>
                rest.reduce((sum, model) => sum + (model.intervals[at]?.tokens ?? 0), 0),
              ),
            },
          ]),
    ];
  }, [data]);
  const cost = useMemo(
    () => [{ label: "Cost", values: now.intervals.map(({ total_cost_micros }) => total_cost_micros) }],
    [data],
  );
  const people = useMemo(
    () => [
      { label: "People", values: now.intervals.map(({ users }) => users) },
      { label: "Chats", values: now.intervals.map(({ chats }) => chats) },
    ],
    [data],
  );
  return (
    <>
      <Stats
        stats={[
          { label: "Chats", value: count(now.chats), note: formatChange(now.chats, before.chats) },
          { label: "People", value: count(now.users), note: formatChange(now.users, before.users) },
          {
            label: "Tokens",
            value: formatShortCount(sumTokens(now)),
            note: formatChange(sumTokens(now), sumTokens(before)),
          },
          {
            label: "Model cost",
            value: formatMoney(now.total_cost_micros),
            note:
              now.unpriced_request_count > 0
                ? `${count(now.unpriced_request_count)} calls without a price`
                : formatChange(now.total_cost_micros, before.total_cost_micros),
          },
        ]}
      />
      <div class="split even">
        <Plot title="Tokens by model" days={days} longDays={longDays} lines={tokens} measure={SHORT_COUNT} />
        <Plot title="Cost" unit="US dollars" days={days} longDays={longDays} lines={cost} measure={MONEY} />
        <Plot title="Chats per day" days={days} longDays={longDays} lines={people} measure={COUNT} />
        <Table
          title="Models"
          head={["Model", "Calls", "Tokens", "Cost"]}
          empty="No model calls in this period."
          rows={now.models.map((model) => ({
            key: model.model_config_id,
            cells: [
              formatName(model),
              count(model.request_count),
              formatShortCount(sumTokens(model)),
              model.unpriced_request_count === model.request_count ? "no price" : formatMoney(model.total_cost_micros),
            ],
          }))}
        />
        {spenders.length > 0 && (
          <Table
            title="Top spenders"
            head={["Person", "Chats", "Tokens", "Cost"]}
            empty=""
            rows={spenders.map((one) => ({
              key: one.user_id,
              cells: [
                one.name || one.username,
                count(one.chat_count),
                formatShortCount(sumTokens(one)),
                formatMoney(one.total_cost_micros),
              ],
            }))}
          />
        )}
      </div>
    </>
  );
};
