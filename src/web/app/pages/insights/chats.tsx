// Chat statistics: users, tokens by model, and cost.
import { useMemo } from "preact/hooks";
import type { UserCosts } from "#schema/chats/chat-cost.ts";
import type { ChatInsights } from "#schema/insights.ts";
import { call } from "../../data/api.ts";
import { isSiteOwner } from "../../data/session.ts";
import { Plot } from "../../parts/plot/plot.tsx";
import { COUNT, formatChange, formatMoney, formatNumber, formatShortCount, MONEY, SHORT_COUNT } from "./figures.ts";
import { type PartProps, Report, useDays } from "./part.tsx";
import { Stats } from "./stats.tsx";
import { Table } from "./table.tsx";

type ChatData = {
  readonly current: ChatInsights["report"];
  readonly previous: ChatInsights["report"];
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

const loadChats = async ({ range }: PartProps): Promise<ChatData> => {
  const [now, before, costs] = await Promise.all([
    call("GET /insights/chats", { query: { ...range.query, interval: "day" } }),
    call("GET /insights/chats", { query: { ...range.previousQuery, interval: "day" } }),
    isSiteOwner.value
      ? call("GET /chats/cost/users", {
          query: { start_date: range.query.start_time, end_date: range.query.end_time, limit: MAX_SPENDERS },
        })
      : undefined,
  ]);
  return { current: now.report, previous: before.report, spenders: costs?.users ?? [] };
};

export const Chats = (props: PartProps) => {
  const { dates } = useDays(props.range);
  return (
    <Report
      name="chats"
      props={props}
      load={() => loadChats(props)}
      toSheet={({ current }) => ({
        head: [
          ...["date", "people", "chats", "calls", "input_tokens", "output_tokens", "cache_read_tokens"],
          ...["cache_creation_tokens", "cost_usd"],
        ],
        rows: current.intervals.map((one, index) => [
          ...[dates[index] ?? "", one.users, one.chats, one.request_count, one.input_tokens, one.output_tokens],
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

const ChatReport = ({ data, range }: PartProps & { data: ChatData }) => {
  const { current, previous, spenders } = data;
  const { days, longDays } = useDays(range);
  const tokenLines = useMemo(() => {
    const listTokens = (model: (typeof current.models)[number]) => model.intervals.map((one) => one.tokens);
    if (current.models.length === 0) return [{ label: "No model", values: current.intervals.map(() => 0) }];
    const shownModels = current.models.length > MAX_LINES ? current.models.slice(0, MAX_LINES - 1) : current.models;
    const otherModels = current.models.slice(shownModels.length);
    return [
      ...shownModels.map((model) => ({ label: formatName(model), values: listTokens(model) })),
      ...(otherModels.length === 0
        ? []
        : [
            {
              label: `${otherModels.length} more`,
              values: current.intervals.map((_, index) =>
                otherModels.reduce((sum, model) => sum + (model.intervals[index]?.tokens ?? 0), 0),
              ),
            },
          ]),
    ];
  }, [data]);
  const costLines = useMemo(
    () => [{ label: "Cost", values: current.intervals.map(({ total_cost_micros }) => total_cost_micros) }],
    [data],
  );
  const countLines = useMemo(
    () => [
      { label: "People", values: current.intervals.map(({ users }) => users) },
      { label: "Chats", values: current.intervals.map(({ chats }) => chats) },
    ],
    [data],
  );
  return (
    <>
      <Stats
        stats={[
          { label: "Chats", value: formatNumber(current.chats), note: formatChange(current.chats, previous.chats) },
          { label: "People", value: formatNumber(current.users), note: formatChange(current.users, previous.users) },
          {
            label: "Tokens",
            value: formatShortCount(sumTokens(current)),
            note: formatChange(sumTokens(current), sumTokens(previous)),
          },
          {
            label: "Model cost",
            value: formatMoney(current.total_cost_micros),
            note:
              current.unpriced_request_count > 0
                ? `${formatNumber(current.unpriced_request_count)} calls without a price`
                : formatChange(current.total_cost_micros, previous.total_cost_micros),
          },
        ]}
      />
      <div class="split even">
        <Plot title="Tokens by model" days={days} longDays={longDays} lines={tokenLines} measure={SHORT_COUNT} />
        <Plot title="Cost" unit="US dollars" days={days} longDays={longDays} lines={costLines} measure={MONEY} />
        <Plot title="Chats per day" days={days} longDays={longDays} lines={countLines} measure={COUNT} />
        <Table
          title="Models"
          head={["Model", "Calls", "Tokens", "Cost"]}
          empty="No model calls in this period."
          rows={current.models.map((model) => ({
            key: model.model_config_id,
            cells: [
              formatName(model),
              formatNumber(model.request_count),
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
                formatNumber(one.chat_count),
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
