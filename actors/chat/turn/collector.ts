// Assembles the content of a message from a model's events, and returns the live parts for followers.
import { toRfc3339 } from "#base/clock.ts";
import type { MessagePart } from "#schema/chats/chat-part.ts";
import { ModelError, type ModelEvent, type ModelUsage } from "#src/llm/model.ts";
import { execute } from "#src/tools/processes/execute.ts";
import { parseCommands } from "#src/tools/processes/parsed-commands.ts";

type TextEvent = Extract<ModelEvent, { type: "text" | "reasoning" }>;
type MutablePart = { -readonly [K in keyof MessagePart]: MessagePart[K] };

/** Maximum characters of a message's text and calls. No model gives such a long answer, and messages must fit into memory. */
export const MAX_MESSAGE_CHARACTERS = 4 * 1024 * 1024;
/** Each event counts as this many characters in addition to its texts, so that many empty events are limited, too. */
export const EVENT_CHARACTERS = 4;

export class Collector {
  readonly #parts: MutablePart[] = [];
  #characters = 0;
  usage: ModelUsage | null = null;
  /** The model's raw arguments by call ID. */
  readonly inputs = new Map<string, string>();
  finish: Extract<ModelEvent, { type: "finish" }>["reason"] | undefined;

  /** Adds an event and returns its live parts. Throws `ModelError` if the answer becomes too long. */
  add(event: ModelEvent, now: number): MessagePart[] {
    this.#characters += countCharacters(event);
    if (this.#characters > MAX_MESSAGE_CHARACTERS) throw new ModelError("config", "", { reason: "endless" });
    switch (event.type) {
      case "text":
        return [...this.#endReasoning(now), ...this.#appendDelta("text", event, now)];
      case "reasoning":
        return [...this.#appendDelta("reasoning", event, now), ...(event.ends ? this.#endReasoning(now) : [])];
      case "text_was_reasoning":
        for (const part of this.#parts) {
          if (part.type === "text") Object.assign(part, { type: "reasoning", created_at: toRfc3339(now) });
        }
        return this.#endReasoning(now);
      case "tool_call_delta": {
        const { id: tool_call_id, name: tool_name, delta: args_delta } = event;
        return [...this.#endReasoning(now), { type: "tool-call", tool_call_id, tool_name, args_delta }];
      }
      case "tool_call": {
        const { id: tool_call_id, name: tool_name, args, input } = event;
        if (input !== undefined) this.inputs.set(tool_call_id, input);
        const parsed_commands = tool_name === execute.name ? parseCommands(findCommand(args)) : undefined;
        const part: MessagePart = {
          type: "tool-call",
          tool_call_id,
          tool_name,
          args,
          created_at: toRfc3339(now),
          ...(parsed_commands ? { parsed_commands } : {}),
        };
        if (event.provider_executed) part.provider_executed = true;
        const ended = this.#endReasoning(now);
        this.#parts.push(event.metadata ? { ...part, provider_metadata: event.metadata } : part);
        return [...ended, part];
      }
      case "tool_result": {
        const { id: tool_call_id, name: tool_name, result, is_error, metadata } = event;
        const part: MessagePart = {
          type: "tool-result",
          tool_call_id,
          tool_name,
          result,
          is_error,
          provider_executed: true,
          created_at: toRfc3339(now),
        };
        this.#parts.push({ ...part, provider_metadata: metadata });
        return [part];
      }
      case "source": {
        const { source_id, url, title } = event;
        const part: MessagePart = { type: "source", source_id, url, title };
        this.#parts.push(part);
        return [part];
      }
      case "warnings":
        return [];
      case "usage":
        this.usage = event.usage;
        return [];
      case "finish":
        this.finish = event.reason;
        return this.#endReasoning(now);
    }
  }

  /** Returns the message so far. Ends open reasoning and omits incomplete calls. */
  content(now: number): MessagePart[] {
    this.#endReasoning(now);
    return this.#parts.filter(
      ({ type, text, provider_metadata }) =>
        (type !== "text" && type !== "reasoning") || text !== "" || provider_metadata !== undefined,
    );
  }

  #appendDelta(type: "text" | "reasoning", event: TextEvent, now: number): MessagePart[] {
    const { delta, metadata } = event;
    const last = this.#parts.at(-1);
    const openPart = last?.type === type && last.completed_at === undefined ? last : undefined;
    // Ignores an event without content, such as the end of reasoning that never began.
    if (!openPart && delta === "" && !metadata) return [];
    const createdAt = !openPart && type === "reasoning" ? { created_at: toRfc3339(now) } : {};
    const part: MutablePart = openPart ?? { type, text: "", ...createdAt };
    if (!openPart) this.#parts.push(part);
    part.text += delta;
    if (metadata) part.provider_metadata = metadata;
    return delta === "" ? [] : [{ type, text: delta, ...createdAt }];
  }

  #endReasoning(now: number): MessagePart[] {
    const last = this.#parts.at(-1);
    if (last?.type !== "reasoning" || last.completed_at !== undefined) return [];
    last.completed_at = toRfc3339(now);
    return [{ type: "reasoning", text: "", completed_at: last.completed_at }];
  }
}

const findCommand = (args: unknown): unknown => (args as { command?: unknown } | null | undefined)?.command;

const countCharacters = (event: ModelEvent): number => {
  switch (event.type) {
    case "text":
    case "reasoning":
    case "tool_call_delta":
      return event.delta.length + countMetadata(event) + EVENT_CHARACTERS;
    case "tool_call":
      return (event.input?.length ?? 0) + countMetadata(event) + EVENT_CHARACTERS;
    case "tool_result":
      return (JSON.stringify(event.result) ?? "").length + countMetadata(event) + EVENT_CHARACTERS;
    case "source":
      return event.url.length + (event.title?.length ?? 0) + EVENT_CHARACTERS;
    default:
      return 0;
  }
};

const countMetadata = (event: ModelEvent): number =>
  "metadata" in event && event.metadata ? JSON.stringify(event.metadata).length : 0;
