// Chat usage in a range: people, chats, tokens and cost, by day or week and by model.
import { toRfc3339 } from "#base/clock.ts";
import { ZERO_SPEND } from "#db/chats/spend.ts";
import {
  type SpendFigures,
  sumAllSpend,
  sumSpendByInterval,
  sumSpendByModelAndInterval,
} from "#db/chats/spend-figures.ts";
import type { ChatInsights } from "#schema/insights.ts";
import type { DomainContext } from "../context.ts";
import { type Interval, listEdges, type Range, toIntervalParams } from "./range.ts";

const NO_USAGE = { users: 0, chats: 0, ...ZERO_SPEND };

const sumTokens = (sums: SpendFigures): number =>
  sums.input_tokens + sums.output_tokens + sums.cache_read_tokens + sums.cache_creation_tokens;

const addFigures = (a: SpendFigures, b: SpendFigures): SpendFigures => {
  const names = Object.keys(ZERO_SPEND) as (keyof SpendFigures)[];
  return Object.fromEntries(names.map((name) => [name, a[name] + b[name]])) as unknown as SpendFigures;
};

type Model = ChatInsights["report"]["models"][number];

/** For the whole deployment. Rejects with 400 for weeks that do not fit into the range. */
export const loadChatInsights = async (
  { store }: DomainContext,
  range: Range,
  interval: Interval,
): Promise<ChatInsights> => {
  const edges = listEdges(range, interval);
  const count = edges.length - 1;
  const ranges = toIntervalParams(range, interval);
  const [[totals = NO_USAGE], intervalRows, cells] = await Promise.all([
    store.scan(sumAllSpend(ranges)),
    store.scan(sumSpendByInterval(ranges)),
    store.scan(sumSpendByModelAndInterval(ranges)),
  ]);
  const bySlot = new Map(intervalRows.map(({ slot, ...sums }) => [slot, sums]));
  const models = new Map<string, Model>();
  for (const { slot, model_config_id, model, display_name, ...sums } of cells) {
    const found = models.get(model_config_id);
    const intervals = found?.intervals ?? Array.from({ length: count }, () => ({ tokens: 0, total_cost_micros: 0 }));
    intervals[slot] = { tokens: sumTokens(sums), total_cost_micros: sums.total_cost_micros };
    models.set(model_config_id, {
      model_config_id,
      model,
      display_name,
      intervals,
      ...addFigures(found ?? ZERO_SPEND, sums),
    });
  }
  return {
    report: {
      start_time: toRfc3339(range.from),
      end_time: toRfc3339(range.to),
      ...totals,
      intervals: edges.slice(0, -1).map((start, index) => ({
        start_time: toRfc3339(start),
        end_time: toRfc3339(edges[index + 1] ?? start),
        ...(bySlot.get(index) ?? NO_USAGE),
      })),
      models: [...models.values()].sort((a, b) => sumTokens(b) - sumTokens(a)),
    },
  };
};
