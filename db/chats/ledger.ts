// Reads the ledger of model calls: the gateway's calls, newest first, and sums over all calls. Sums are for `store.scan`.
import type { GatewayCall, UsageDimension } from "#schema/ai/gateway.ts";
import type { Query, Value } from "../engine/sql.ts";
import type { SpendSums } from "./spend.ts";

export type CallRow = Omit<GatewayCall, "created_at"> & { readonly created_at: number };

const toText = (value: Value | undefined): string => String(value ?? "");
const toNumberOrNull = (value: Value | undefined): number | null =>
  value === null || value === undefined ? null : Number(value);

export type CallFilter = {
  readonly user_id: string | undefined;
  readonly workspace_id: string | undefined;
  /** Selects only calls with a lower ID. */
  readonly before: number | undefined;
  readonly limit: number;
};

/** Returns the gateway's calls, newest first. */
export const listCalls = ({ user_id, workspace_id, before, limit }: CallFilter): Query<CallRow> => ({
  sql: `select s.key, s.user_id, coalesce(u.username, ''), s.workspace_id, coalesce(w.name, ''), s.provider_id,
      coalesce(p.display_name, ''), s.asked_model, s.model, s.outcome, s.is_estimated, s.input_tokens, s.output_tokens,
      s.cache_read_tokens, s.cache_creation_tokens, s.cost_micros, s.first_byte_ms, s.duration_ms, s.provider_request_id, s.created_at, s.chat_id,
      case when r.id is null then 0 else 1 end
    from model_spend s left join users u on u.id = s.user_id left join workspaces w on w.id = s.workspace_id
      left join model_providers p on p.id = s.provider_id left join model_recordings r on r.id = s.recording_id
    where s.kind = 'gateway' and s.key < ?1 and (?2 = '' or s.user_id = ?2) and (?3 = '' or s.workspace_id = ?3)
    order by s.key desc limit ?4`,
  params: [before ?? Number.MAX_SAFE_INTEGER, user_id ?? "", workspace_id ?? "", limit],
  map: (row) => ({
    id: Number(row[0]),
    user_id: toText(row[1]),
    username: toText(row[2]),
    workspace_id: toText(row[3]) || null,
    workspace_name: toText(row[4]),
    chat_id: toText(row[20]) || null,
    provider_id: toText(row[5]),
    provider_name: toText(row[6]),
    asked_model: toText(row[7]),
    model: toText(row[8]),
    outcome: toText(row[9]) as CallRow["outcome"],
    is_estimated: Number(row[10]) === 1,
    input_tokens: Number(row[11]),
    output_tokens: Number(row[12]),
    cache_read_tokens: Number(row[13]),
    cache_creation_tokens: Number(row[14]),
    cost_micros: toNumberOrNull(row[15]),
    first_byte_ms: toNumberOrNull(row[16]),
    duration_ms: toNumberOrNull(row[17]),
    provider_request_id: toText(row[18]),
    is_recorded: Number(row[21]) === 1,
    created_at: Number(row[19]),
  }),
});

/** The key and the display name of each group, by dimension. */
const DIMENSIONS: Readonly<
  Record<UsageDimension, { readonly key: string; readonly name: string; readonly joins: string }>
> = {
  user: { key: "s.user_id", name: "coalesce(max(u.username), '')", joins: "left join users u on u.id = s.user_id" },
  group: {
    key: "coalesce(g.group_id, '')",
    name: "coalesce(nullif(max(n.display_name), ''), max(n.name), '')",
    joins: "left join group_members g on g.user_id = s.user_id left join groups n on n.id = g.group_id",
  },
  workspace: {
    key: "s.workspace_id",
    name: "coalesce(max(w.name), '')",
    joins: "left join workspaces w on w.id = s.workspace_id",
  },
  template: {
    // Rows that earlier versions wrote have no template ID.
    key: "coalesce(nullif(s.template_id, ''), w.template_id, '')",
    name: "coalesce(nullif(max(t.display_name), ''), max(t.name), '')",
    joins: `left join workspaces w on w.id = s.workspace_id
      left join templates t on t.id = coalesce(nullif(s.template_id, ''), w.template_id)`,
  },
  model: {
    key: "coalesce(nullif(s.model, ''), c.model, '')",
    name: "coalesce(max(c.display_name), '')",
    joins: "left join model_configs c on c.id = s.model_config_id",
  },
  provider: {
    key: "coalesce(nullif(s.provider_id, ''), c.provider_id, '')",
    name: "coalesce(max(p.display_name), '')",
    joins: `left join model_configs c on c.id = s.model_config_id
      left join model_providers p on p.id = coalesce(nullif(s.provider_id, ''), c.provider_id)`,
  },
  day: { key: "strftime('%Y-%m-%d', (s.created_at + ?4) / 1000, 'unixepoch')", name: "''", joins: "" },
  kind: { key: "s.kind", name: "''", joins: "" },
};

const MAX_ROWS = 1_000;

export type UsageRow = SpendSums & { readonly key: string; readonly name: string };

type UsageFilter = {
  readonly from: number;
  readonly to: number;
  /** The UTC offset of the time zone in which days begin, positive to the east. */
  readonly offset: number;
  readonly user_id: string | undefined;
};

/** Sums all model calls in a range, from chats and the gateway, by one dimension. Times in milliseconds since 1970. */
export const sumUsage = (by: UsageDimension, { from, to, offset, user_id }: UsageFilter): Query<UsageRow> => {
  const { key, name, joins } = DIMENSIONS[by];
  return {
    sql: `select ${key}, ${name}, coalesce(sum(s.cost_micros), 0), count(*), count(*) - count(s.cost_micros),
        coalesce(sum(s.input_tokens), 0), coalesce(sum(s.output_tokens), 0), coalesce(sum(s.cache_read_tokens), 0),
        coalesce(sum(s.cache_creation_tokens), 0)
      from model_spend s ${joins}
      where s.created_at >= ?1 and s.created_at < ?2 and (?3 = '' or s.user_id = ?3)
      group by 1 order by ${by === "day" ? "1" : "3 desc, 1"} limit ${MAX_ROWS}`,
    params: [from, to, user_id ?? "", ...(by === "day" ? [offset] : [])],
    map: ([id, label, cost, requests, unpriced, input, output, read, creation]) => ({
      key: toText(id),
      name: toText(label),
      total_cost_micros: Number(cost),
      request_count: Number(requests),
      unpriced_request_count: Number(unpriced),
      input_tokens: Number(input),
      output_tokens: Number(output),
      cache_read_tokens: Number(read),
      cache_creation_tokens: Number(creation),
    }),
  };
};
