// Wire shapes of recorded model calls (facts/chats 4.18).
import { type Static, Type as t } from "@sinclair/typebox";
import { optionalTime, parentChatId, rootChatId, time, uuid } from "../fields.ts";
import { oneOf } from "../one-of.ts";
import { namedObject } from "../shape-names.ts";

export const RUN_KINDS = ["chat_turn", "title_generation", "quickgen", "compaction"] as const;
export const RUN_STATUSES = ["in_progress", "completed", "error", "interrupted"] as const;

export const ChatRun = namedObject("ChatRun", {
  id: uuid(),
  chat_id: uuid(),
  parent_chat_id: parentChatId,
  root_chat_id: rootChatId,
  trigger_message_id: t.Optional(t.Integer({ description: "The ID of the newest user message when the run started." })),
  history_tip_message_id: t.Optional(t.Integer({ description: "The ID of the newest message when the run started." })),
  kind: oneOf(
    RUN_KINDS,
    "The purpose of the model calls. `chat_turn`: a turn. `quickgen`: a short text, such as a summary of the turn. `compaction`: a summary that replaces the history.",
  ),
  status: oneOf(
    RUN_STATUSES,
    "How the run ended; `in_progress` until it has, or if the server stopped in between. `interrupted`: it was stopped.",
  ),
  provider: t.String({ description: "The provider's kind, such as `anthropic`." }),
  model: t.String({ description: "The ID of the model configuration." }),
  summary: t.String({ description: "The number of model calls, as text; empty until the run has ended." }),
  started_at: time(),
  updated_at: time("When the last model call of the run ended."),
  finished_at: optionalTime("When the run ended; absent until it has."),
});
export type ChatRun = Static<typeof ChatRun>;

const recordedValue = (what: string) =>
  t.Unknown({ description: `${what} Limited to 64 KiB: long texts and lists are truncated.` });

export const ChatRunStep = namedObject("ChatRunStep", {
  run_id: uuid("The ID of the run that the step belongs to."),
  step_number: t.Integer({ description: "The number of the step, starting at 1." }),
  operation: oneOf(
    ["stream", "generate"],
    "`stream`: the response was shown while it arrived, as in turns. `generate`: all other runs.",
  ),
  status: oneOf(RUN_STATUSES, "How the model call ended. `interrupted`: it was stopped."),
  request: recordedValue("The request to the model: messages, tools and effort."),
  response: recordedValue("The response of the model: `content` and `finish`."),
  usage: t.Optional(
    t.Record(t.String(), t.Integer(), {
      description: "The number of tokens by kind; absent if the provider reported none.",
    }),
  ),
  error: t.Optional(recordedValue("Why the step failed.")),
  started_at: time(),
  finished_at: time(),
});
export type ChatRunStep = Static<typeof ChatRunStep>;

export const ChatRunWithSteps = namedObject("ChatRunWithSteps", {
  ...ChatRun.properties,
  steps: t.Array(ChatRunStep, { description: "The model calls of the run, in order; at most the first 200." }),
});
export type ChatRunWithSteps = Static<typeof ChatRunWithSteps>;
