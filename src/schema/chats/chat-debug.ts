// Wire shapes of recorded model calls (facts/chats 4.18).
import { type Static, Type as t } from "@sinclair/typebox";
import { time, uuid } from "../fields.ts";
import { oneOf } from "../one-of.ts";
import { namedObject } from "../shape-names.ts";

export const RUN_KINDS = ["chat_turn", "title_generation", "quickgen", "compaction"] as const;
export const RUN_STATUSES = ["in_progress", "completed", "error", "interrupted"] as const;

export const ChatRun = namedObject("ChatRun", {
  id: uuid(),
  chat_id: uuid(),
  parent_chat_id: t.Optional(uuid()),
  root_chat_id: t.Optional(uuid()),
  trigger_message_id: t.Optional(t.Integer({ description: "The ID of the newest user message when the run started." })),
  history_tip_message_id: t.Optional(t.Integer({ description: "The ID of the newest message when the run started." })),
  kind: oneOf(RUN_KINDS),
  status: oneOf(RUN_STATUSES),
  provider: t.String(),
  model: t.String({ description: "The ID of the model configuration." }),
  summary: t.String(),
  started_at: time(),
  updated_at: time(),
  finished_at: t.Optional(time()),
});
export type ChatRun = Static<typeof ChatRun>;

const recordedValue = (what: string) =>
  t.Unknown({ description: `${what} Limited to 64 KiB: long texts and lists are truncated.` });

export const ChatRunStep = namedObject("ChatRunStep", {
  run_id: uuid(),
  step_number: t.Integer({ description: "The number of the step, starting at 1." }),
  operation: oneOf(["stream", "generate"]),
  status: oneOf(RUN_STATUSES),
  request: recordedValue("The request to the model: messages, tools and effort."),
  response: recordedValue("The response of the model: `content` and `finish`."),
  usage: t.Optional(t.Record(t.String(), t.Integer())),
  error: t.Optional(recordedValue("Why the step failed.")),
  started_at: time(),
  finished_at: time(),
});
export type ChatRunStep = Static<typeof ChatRunStep>;

export const ChatRunWithSteps = namedObject("ChatRunWithSteps", { ...ChatRun.properties, steps: t.Array(ChatRunStep) });
export type ChatRunWithSteps = Static<typeof ChatRunWithSteps>;
