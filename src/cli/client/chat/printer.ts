// Prints a chat's events as text: the model's answer on one stream, its activity and reasoning on the other, so that a pipe contains only
// the answer (rule CV-12). Text that was streamed is not printed again with the complete message.
import type { ChatMessage } from "#schema/chats/chat.ts";
import type { ChatEvent } from "#schema/chats/chat-event.ts";
import type { ShownPart } from "#schema/chats/chat-part.ts";
import { plain, several } from "../../text.ts";

export type Sides = {
  /** Writes the model's answer. */
  say(text: string): void;
  /** Writes activity. */
  note(text: string): void;
  /** Also prints the user's own messages. */
  showsUsers: boolean;
  /** Escape sequences may be used in notes. */
  isColoured: boolean;
};

type PartEvent = Extract<ChatEvent, { type: "message_part" }>["message_part"];

const ARGS = 200;

export class ChatPrinter {
  readonly #sides: Sides;
  /** Streamed text of the current step. */
  #said = "";
  #step = "";
  readonly #calls = new Set<string>();
  readonly #results = new Set<string>();
  #newest = 0;
  #queued = 0;
  /** The last character written to either stream was a newline. */
  #isLineStart = true;

  constructor(sides: Sides) {
    this.#sides = sides;
  }

  show(event: ChatEvent): void {
    if (event.type === "message_part") this.#part(event.message_part);
    else if (event.type === "message") this.#message(event.message);
    else if (event.type === "history_reset") {
      this.#newest = 0;
      this.#remark("[earlier messages were edited]");
    } else if (event.type === "retry") this.#retry(event.retry);
    else if (event.type === "queue_update") {
      const { length } = event.queued_messages;
      if (length > this.#queued) this.#remark("[queued until the current turn ends]");
      this.#queued = length;
    } else if (event.type === "action_required" && event.action_required.kind === undefined) {
      const names = event.action_required.tool_calls.map(({ tool_name }) => plain(tool_name)).join(", ");
      this.#remark(`[waiting for tool results from another client: ${names}]`);
    }
  }

  /** Prints a message that is not an event, on separate lines. */
  note(text: string): void {
    this.#remark(text);
  }

  /** Ends an unfinished line. */
  endLine(): void {
    if (this.#isLineStart) return;
    this.#sides.say("\n");
    this.#isLineStart = true;
  }

  #part({ history_version, generation_attempt, role, part }: PartEvent): void {
    const step = `${history_version}.${generation_attempt}`;
    if (step !== this.#step && this.#said !== "") {
      this.#remark("[starting over]");
      this.#said = "";
    }
    this.#step = step;
    if (part.type === "text") {
      this.#say(part.text ?? "");
      this.#said += part.text ?? "";
    } else if (part.type === "reasoning") this.#note(part.text ?? "");
    else this.#tool(part, role);
  }

  #message({ id, role, content }: ChatMessage): void {
    if (id <= this.#newest) return;
    this.#newest = id;
    const text = content.flatMap((part) => (part.type === "text" ? [part.text ?? ""] : [])).join("");
    if (role === "user") {
      if (this.#sides.showsUsers) {
        this.endLine();
        this.#say(`> ${text.replaceAll("\n", "\n> ")}\n`);
      }
      return;
    }
    if (role === "assistant" && text !== "") {
      const isSame = text.startsWith(this.#said);
      if (!isSame) this.endLine();
      this.#say(isSame ? text.slice(this.#said.length) : text);
      this.endLine();
    }
    this.#said = "";
    for (const part of content) this.#tool(part, role);
  }

  #tool(part: ShownPart, role: string): void {
    const { type, tool_call_id = "", tool_name = "", args, result, result_delta } = part;
    if (type === "tool-call" && args !== undefined && !this.#calls.has(tool_call_id)) {
      this.#calls.add(tool_call_id);
      this.#remark(`▸ ${plain(tool_name)} ${formatArgs(args)}`);
    }
    if (type !== "tool-result" || role === "user") return;
    if (result_delta !== undefined) this.#note(result_delta);
    else if (result !== undefined && !this.#results.has(tool_call_id))
      this.#remark(`◂ ${formatResult(result, part.is_error)}`);
    if (result !== undefined) this.#results.add(tool_call_id);
  }

  #retry({ error, delay_ms }: Extract<ChatEvent, { type: "retry" }>["retry"]): void {
    this.#remark(`[${plain(error)} Retrying in ${Math.ceil(delay_ms / 1000)} s.]`);
  }

  #say(text: string): void {
    const shown = several(text);
    if (shown === "") return;
    this.#sides.say(shown);
    this.#isLineStart = shown.endsWith("\n");
  }

  #note(text: string): void {
    const shown = several(text);
    if (shown === "") return;
    this.#sides.note(this.#sides.isColoured ? `\u001b[2m${shown}\u001b[22m` : shown);
    this.#isLineStart = shown.endsWith("\n");
  }

  /** Prints a note on separate lines. */
  #remark(text: string): void {
    this.#note(`${this.#isLineStart ? "" : "\n"}${text}\n`);
  }
}

const formatArgs = (args: unknown): string => {
  const { command } = (args ?? {}) as { command?: unknown };
  return cut(typeof command === "string" ? command : (JSON.stringify(args) ?? ""));
};

const formatResult = (result: unknown, isError = false): string => {
  const { error, exit_code } = (result ?? {}) as { error?: unknown; exit_code?: unknown };
  if (typeof error === "string") return cut(error);
  if (typeof exit_code === "number") return exit_code === 0 ? "done" : `exit code ${exit_code}`;
  return isError ? cut(JSON.stringify(result) ?? "failed") : "done";
};

const cut = (text: string): string => Bun.sliceAnsi(plain(text), 0, ARGS, { ellipsis: "…" });
