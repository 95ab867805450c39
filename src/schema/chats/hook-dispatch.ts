// Dispatches of lifecycle hooks as site owners see them (docs/hooks.md).
import { type Static, Type as t } from "@sinclair/typebox";
import { oneOf } from "../one-of.ts";
import { namedObject } from "../shape-names.ts";

export const HookDispatch = namedObject("HookDispatch", {
  id: t.String({ format: "uuid", description: "The `dispatch_id` of the request." }),
  event: t.String({ description: "The name of the lifecycle event." }),
  chat_id: t.String({
    format: "uuid",
    description: "The ID of the chat. The chat may have been deleted, or never created.",
  }),
  owner_id: t.String({ format: "uuid", description: "The ID of the chat's owner." }),
  tool_name: t.Optional(t.String({ description: "The name of the tool. Only for tool events." })),
  mode: oneOf(["enforce", "observe"], "Whether the decision took effect (`enforce`) or was only recorded (`observe`)."),
  source: oneOf(
    ["deployment", "workspace"],
    "What made the decision: the deployment's consumer, or a program in the workspace.",
  ),
  result: t.String({
    description:
      "The decision: `none`, `allow`, `rewrite` or `deny`. If there was no decision, the reason: `connection_failed`, `timeout`, `http_error`, `signature_invalid`, `protocol_error`, `over_capacity`, `program_failed` or `cancelled`.",
  }),
  created_at: t.String({ format: "date-time", description: "When the request was sent." }),
  duration_ms: t.Integer({ description: "The time until the decision or the failure, in milliseconds." }),
  request: t.Optional(t.String({ description: "The request body. Only set if contents are recorded." })),
  response: t.Optional(t.String({ description: "The response body. Only set if contents are recorded." })),
});
export type HookDispatch = Static<typeof HookDispatch>;

export const HookDispatches = namedObject("HookDispatches", {
  dispatches: t.Array(HookDispatch, { description: "The dispatches, newest first." }),
  has_more: t.Boolean({ description: "Whether there are older entries." }),
});

export const HookConsumer = namedObject("HookConsumer", {
  configured: t.Boolean({ description: "Whether the settings define a consumer." }),
  enabled: t.Boolean({
    description: "Whether the setting `hook_enabled` is on. If not, the consumer receives nothing.",
  }),
  mode: oneOf(
    ["enforce", "observe"],
    "Whether the consumer's decisions take effect (`enforce`) or are only recorded (`observe`).",
  ),
  url: t.String({ description: "The consumer's URL, without credentials and query; empty if there is no consumer." }),
  timeout_ms: t.Integer({ description: "The timeout of a request to the consumer, in milliseconds." }),
  has_previous_secret: t.Boolean({
    description: "Whether a previous secret is also accepted, while the secret is being rotated.",
  }),
  keeps_contents: t.Boolean({ description: "Whether request and response bodies are stored." }),
  ledger_days: t.Integer({ description: "How many days dispatches are kept." }),
});
export type HookConsumer = Static<typeof HookConsumer>;

export const TriedHookConsumer = namedObject("TriedHookConsumer", {
  works: t.Boolean({ description: "Whether the consumer sent a valid response to a test event." }),
  problem: t.Optional(t.String({ description: "Why the response is invalid." })),
  took_ms: t.Integer({ description: "The time until the response or the failure, in milliseconds." }),
});
export type TriedHookConsumer = Static<typeof TriedHookConsumer>;
