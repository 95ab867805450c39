// `agent: <task>` for the demo model: starts a sub-chat with this task, waits for it, and says what it has reported. Used by demo.ts.
import type { MessagePart } from "#schema/chats/chat-part.ts";
import type { ModelEvent, ModelRequest } from "./model.ts";

type Call = Extract<ModelEvent, { type: "tool_call" }>;

/** The next call for such a task: the first starts the agent, the second waits for it. Undefined when none exists to make. */
export const agentCall = (task: string, { messages, tools }: ModelRequest): Call | undefined => {
  const id = `demo-${messages.length}-1`;
  const started = resultsIn(messages).find(({ tool_name }) => tool_name === "spawn_agent")?.result;
  const chat_id = (started as { chat_id?: string } | undefined)?.chat_id;
  if (chat_id !== undefined) return { type: "tool_call", id, name: "wait_agent", args: { chat_id } };
  const canStart = task !== "" && messages.at(-1)?.role !== "tool" && tools.some(({ name }) => name === "spawn_agent");
  return canStart ? { type: "tool_call", id, name: "spawn_agent", args: { type: "general", prompt: task } } : undefined;
};

/** What the agent has come to, for a person; undefined when nothing of that kind has just been answered. */
export const agentWords = ({ messages }: Pick<ModelRequest, "messages">): string | undefined => {
  const [answer, ...more] = resultsIn(messages);
  if (answer?.tool_name !== "wait_agent" || answer.is_error || more.length > 0) return undefined;
  const { report = "", last_error, timed_out } = answer.result as Report;
  if (timed_out) return "The agent is still at work.";
  return last_error === undefined ? `The agent reports: ${report}` : `The agent has failed: ${last_error}`;
};

type Report = { report?: string; last_error?: string; timed_out?: boolean };

/** The results of the last step. */
const resultsIn = (messages: ModelRequest["messages"]): MessagePart[] =>
  messages
    .slice(messages.findLastIndex(({ role }) => role === "assistant") + 1)
    .flatMap(({ content }) => content.filter(({ type }) => type === "tool-result"));
