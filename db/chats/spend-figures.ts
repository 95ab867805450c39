// Usage of all chats in a range, by time interval and by model. For `store.scan`.
import type { Query, Value } from "../engine/sql.ts";
import type { SpendSums } from "./spend.ts";

/** Times in milliseconds, [from, to); `step` is the length of an interval. At `changed_at`, daylight saving moves clocks by `forward`. */
export type SpendRange = {
  readonly from: number;
  readonly to: number;
  readonly step: number;
  readonly changed_at: number;
  readonly forward: number;
};

export type SpendFigures = Readonly<SpendSums>;

const SUMS = `coalesce(sum(s.cost_micros), 0), count(*), count(*) - count(s.cost_micros), sum(s.input_tokens),
  sum(s.output_tokens), sum(s.cache_read_tokens), sum(s.cache_creation_tokens)`;
const INTERVAL_INDEX = "(s.created_at - ?1 + case when s.created_at >= ?4 then ?5 else 0 end) / ?3";
const IN_RANGE = "s.created_at >= ?1 and s.created_at < ?2";

const toSpendFigures = (row: readonly (Value | undefined)[]): SpendFigures => {
  const [cost, requests, unpriced, input, output, read, creation] = row.map(Number);
  return {
    total_cost_micros: cost ?? 0,
    request_count: requests ?? 0,
    unpriced_request_count: unpriced ?? 0,
    input_tokens: input ?? 0,
    output_tokens: output ?? 0,
    cache_read_tokens: read ?? 0,
    cache_creation_tokens: creation ?? 0,
  };
};

type DistinctCounts = { readonly users: number; readonly chats: number };

/** Sums by interval, with the number of people and root chats; `slot` counts the intervals from `from` on. Omits empty intervals. */
export const sumSpendByInterval = (
  range: SpendRange,
): Query<SpendFigures & DistinctCounts & { readonly slot: number }> => ({
  sql: `select ${INTERVAL_INDEX}, count(distinct s.user_id), count(distinct s.root_chat_id), ${SUMS}
    from model_spend s where ${IN_RANGE} group by 1 order by 1`,
  params: [range.from, range.to, range.step, range.changed_at, range.forward],
  map: ([slot, users, chats, ...sums]) => ({
    slot: Number(slot),
    users: Number(users),
    chats: Number(chats),
    ...toSpendFigures(sums),
  }),
});

/** Sums for the whole range, as one row. */
export const sumAllSpend = ({ from, to }: SpendRange): Query<SpendFigures & DistinctCounts> => ({
  sql: `select count(distinct s.user_id), count(distinct s.root_chat_id), coalesce(sum(s.cost_micros), 0), count(*),
      count(*) - count(s.cost_micros), coalesce(sum(s.input_tokens), 0), coalesce(sum(s.output_tokens), 0),
      coalesce(sum(s.cache_read_tokens), 0), coalesce(sum(s.cache_creation_tokens), 0)
    from model_spend s where ${IN_RANGE}`,
  params: [from, to],
  map: ([users, chats, ...sums]) => ({ users: Number(users), chats: Number(chats), ...toSpendFigures(sums) }),
});

type ModelRef = { readonly model_config_id: string; readonly model: string; readonly display_name: string };

/** Sums by model and interval. Deleted models keep their names. */
export const sumSpendByModelAndInterval = (range: SpendRange): Query<SpendFigures & ModelRef & { slot: number }> => ({
  sql: `select ${INTERVAL_INDEX}, s.model_config_id, coalesce(max(c.model), ''), coalesce(max(c.display_name), ''), ${SUMS}
    from model_spend s left join model_configs c on c.id = s.model_config_id
    where ${IN_RANGE} group by 1, 2 order by 1, 2`,
  params: [range.from, range.to, range.step, range.changed_at, range.forward],
  map: ([slot, id, model, display_name, ...sums]) => ({
    slot: Number(slot),
    model_config_id: String(id),
    model: String(model),
    display_name: String(display_name),
    ...toSpendFigures(sums),
  }),
});
