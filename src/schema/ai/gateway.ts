// Wire shapes of the AI gateway: settings of administrators, and the ledger of its calls.
import { type Static, Type as t } from "@sinclair/typebox";
import { time, tokenCounts, uuid } from "../fields.ts";
import { oneOf } from "../one-of.ts";
import { named, namedObject } from "../shape-names.ts";
import { strictObject } from "../strict.ts";
import { lineText } from "../text.ts";

export const CALL_OUTCOMES = ["ok", "failed", "aborted", "lost"] as const;

const MAX_NAMES = 200;
const MAX_TARGETS = 8;
const MAX_IDS = 100;

const Target = strictObject({
  provider_id: uuid(
    "The ID of the model provider. Skipped if the provider is disabled or uses another API than the call.",
  ),
  model: t.Optional(
    lineText({
      maxLength: 256,
      description: "The provider's name for the model. If absent, the requested name.",
    }),
  ),
});

const Name = strictObject({
  name: lineText({
    maxLength: 256,
    description: "The name that callers request, such as `claude-sonnet-4-5`. `*` matches any text: `claude-*`.",
  }),
  targets: t.Array(Target, {
    minItems: 1,
    maxItems: MAX_TARGETS,
    description:
      "The models that calls are sent to. The next one is tried if a provider is unreachable, overloaded or rate-limits requests.",
  }),
  group_ids: t.Optional(
    t.Array(t.String({ format: "uuid" }), {
      maxItems: MAX_IDS,
      description: "The groups whose members can use the name. If absent, everyone can.",
    }),
  ),
  template_ids: t.Optional(
    t.Array(t.String({ format: "uuid" }), {
      maxItems: MAX_IDS,
      description:
        "The templates whose workspaces can use the name. If absent, every workspace and users' own tokens can.",
    }),
  ),
});

const defaultName = t.Optional(
  lineText({ maxLength: 256, description: "The model to use for names that match nothing else." }),
);

const fields = {
  enabled: t.Boolean({ description: "Whether the gateway is enabled." }),
  in_workspaces: t.Boolean({
    description:
      "Whether workspaces get environment variables with the gateway's URLs and a token. Applies from a workspace's next start.",
  }),
  names: t.Array(Name, {
    maxItems: MAX_NAMES,
    description:
      "Names that callers can use; the first match applies. Enabled chat models can always be used by their own names.",
  }),
  default_names: strictObject(
    { anthropic: defaultName, openai: defaultName, google: defaultName },
    { description: "The fallback models, by the API of the call." },
  ),
  recording: t.Optional(
    strictObject(
      {
        enabled: t.Boolean({
          description: "Whether prompts and responses are recorded. Without `recording` they are not.",
        }),
        days: t.Integer({ minimum: 1, maximum: 365, description: "How many days recordings are kept." }),
        max_mib: t.Optional(
          t.Integer({
            minimum: 1,
            maximum: 102_400,
            description:
              "The maximum total size of stored recordings, in MiB; default 1024. The oldest are deleted first.",
          }),
        ),
      },
      { description: "The recording of prompts and responses; off if absent." },
    ),
  ),
};

export const GatewaySettings = named("GatewaySettings", strictObject(fields));
export type GatewaySettings = Static<typeof GatewaySettings>;
export type GatewayName = GatewaySettings["names"][number];

const counts = {
  request_count: t.Integer({ description: "The number of model calls of chats and of the gateway." }),
  unpriced_request_count: t.Integer({
    description: "The number of calls of models without a price, which count as 0 in the sum.",
  }),
  total_cost_micros: t.Integer({ description: "The total cost in millionths of a US dollar." }),
  ...tokenCounts,
};

export const GatewayCall = namedObject("GatewayCall", {
  id: t.Integer({ description: "The call's ID, which increases with each call." }),
  user_id: uuid("The ID of the user who is charged: the owner of the chat, the workspace or the token."),
  username: t.String({ description: "The username of that user; empty if the user was deleted." }),
  workspace_id: t.Union([t.String({ format: "uuid" }), t.Null()], {
    description: "The ID of the workspace whose token was used; null for a user's token.",
  }),
  workspace_name: t.String({ description: "The name of the workspace; empty for a user's token." }),
  chat_id: t.Union([t.String({ format: "uuid" }), t.Null()], {
    description: "The ID of the chat whose coding agent made the call; null for other callers.",
  }),
  provider_id: t.String({ description: "The ID of the model provider that the call was sent to." }),
  provider_name: t.String({ description: "The display name of the provider; empty if it was deleted." }),
  asked_model: t.String({ description: "The model name that the caller requested." }),
  model: t.String({ description: "The model that answered the call." }),
  outcome: oneOf(
    CALL_OUTCOMES,
    "How the call ended. `lost`: the server stopped during the call; the cost is the reserved amount.",
  ),
  is_estimated: t.Boolean({ description: "Whether the usage is an estimate, because the provider did not report it." }),
  ...tokenCounts,
  cost_micros: t.Union([t.Integer(), t.Null()], {
    description: "The cost in millionths of a US dollar; null if the model has no price.",
  }),
  first_byte_ms: t.Union([t.Integer(), t.Null()], {
    description: "The time until the first byte of the response, in milliseconds; null if there was none.",
  }),
  duration_ms: t.Union([t.Integer(), t.Null()], {
    description: "The duration of the whole call, in milliseconds; null if its end is unknown.",
  }),
  provider_request_id: t.String({ description: "The provider's ID for the request; empty if it has none." }),
  is_recorded: t.Boolean({ description: "Whether the prompt and the response are recorded." }),
  created_at: t.String({ format: "date-time", description: "When the call ended." }),
});
export type GatewayCall = Static<typeof GatewayCall>;

export const GatewayCalls = namedObject("GatewayCalls", {
  calls: t.Array(GatewayCall, { description: "The calls, newest first." }),
  next_before: t.Optional(
    t.Integer({ description: "The value of `before` for the next page; absent on the last page." }),
  ),
});
export type GatewayCalls = Static<typeof GatewayCalls>;

export const GatewayRecording = namedObject("GatewayRecording", {
  call_id: t.Integer({ description: "The `id` of the call in the list of calls." }),
  user_id: uuid("The ID of the user who was charged for the call."),
  username: t.String(),
  prompt: t.String({
    description:
      "The request body. If it is larger than 512 KiB, its middle is replaced with a line that says how much was omitted.",
  }),
  answer: t.String({ description: "The first 512 KiB of the response body, or of the events of a stream." }),
  prompt_bytes: t.Integer({ description: "The full size of the prompt, in bytes." }),
  answer_bytes: t.Integer({ description: "The full size of the response, in bytes." }),
  created_at: t.String({ format: "date-time", description: "When the call ended." }),
});
export type GatewayRecording = Static<typeof GatewayRecording>;

/** The dimensions by which usage can be grouped. */
export const USAGE_DIMENSIONS = ["user", "group", "workspace", "template", "model", "provider", "day", "kind"] as const;
export type UsageDimension = (typeof USAGE_DIMENSIONS)[number];

export const AiUsage = namedObject("AiUsage", {
  start_date: time("The beginning of the period."),
  end_date: time("The end of the period, exclusive."),
  by: oneOf(
    USAGE_DIMENSIONS,
    "What the rows are grouped by. `day`: the day on which calls ended. `kind`: the purpose of calls: `chat_turn`, `title_generation`, `quickgen` (short summaries and tests), `compaction` or `gateway`.",
  ),
  total: t.Object(counts, { description: "The totals, with each call counted once." }),
  rows: t.Array(
    t.Object({
      key: t.String({
        description:
          "The ID of the user, group, workspace, template or provider; the model; the day, which begins at the offset of `start_date`; or the kind. Empty for calls that have none.",
      }),
      name: t.String({
        description: "The display name of what `key` refers to; empty for days and kinds, and if it was deleted.",
      }),
      ...counts,
    }),
    {
      description:
        "The usage by key, most expensive first, or days in order; at most 1,000. A call by a user in several groups is counted for each group.",
    },
  ),
});
export type AiUsage = Static<typeof AiUsage>;
