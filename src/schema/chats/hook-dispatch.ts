// Dispatches of lifecycle hooks as site owners see them (docs/hooks.md).
import { type Static, Type as t } from "@sinclair/typebox";
import { oneOf } from "../one-of.ts";
import { namedObject } from "../shape-names.ts";

export const HookDispatch = namedObject("HookDispatch", {
  id: t.String({ format: "uuid", description: "The dispatch_id of the request." }),
  event: t.String({ description: "Of the seven events." }),
  chat_id: t.String({
    format: "uuid",
    description: "The chat; it may never have been created, or been deleted since.",
  }),
  owner_id: t.String({ format: "uuid", description: "Whose chat." }),
  tool_name: t.Optional(t.String({ description: "Of the events of tools." })),
  mode: oneOf(["enforce", "observe"], "Whether the decision counted."),
  source: oneOf(["deployment", "workspace"], "Who decided: the deployment's consumer, or a program in the workspace."),
  result: t.String({
    description:
      "none, allow, rewrite or deny; or why there was no decision: connection_failed, timeout, http_error, signature_invalid, protocol_error, over_capacity, program_failed, cancelled.",
  }),
  created_at: t.String({ format: "date-time" }),
  duration_ms: t.Integer(),
  request: t.Optional(t.String({ description: "The request body; only if contents are recorded." })),
  response: t.Optional(t.String({ description: "The response body; only if contents are recorded." })),
});
export type HookDispatch = Static<typeof HookDispatch>;

export const HookDispatches = namedObject("HookDispatches", {
  dispatches: t.Array(HookDispatch),
  has_more: t.Boolean({ description: "Older entries exist." }),
});

export const HookConsumer = namedObject("HookConsumer", {
  configured: t.Boolean({ description: "The settings name a consumer." }),
  enabled: t.Boolean(),
  mode: oneOf(["enforce", "observe"], "Whether its decisions count."),
  url: t.String({ description: "Without credentials and query; empty without a consumer." }),
  timeout_ms: t.Integer(),
  has_previous_secret: t.Boolean({ description: "The secret is being changed: both are accepted." }),
  keeps_contents: t.Boolean({ description: "The ledger stores the request and the response." }),
  ledger_days: t.Integer({ description: "How long dispatches are kept." }),
});
export type HookConsumer = Static<typeof HookConsumer>;

export const TriedHookConsumer = namedObject("TriedHookConsumer", {
  works: t.Boolean(),
  problem: t.Optional(t.String({ description: "Why its response is not valid." })),
  took_ms: t.Integer(),
});
export type TriedHookConsumer = Static<typeof TriedHookConsumer>;
