// Prints a chat's events as text: the model's answer on one stream, its activity and reasoning on the other, so that a pipe contains only
// the answer (rule CV-12). Text that was streamed is not printed again with the complete message.
import type { ChatMessage } from "#schema/chats/chat.ts";
import type { ChatEvent } from "#schema/chats/chat-event.ts";
import type { ChatMessagePart } from "#schema/chats/chat-part.ts";
import { toPlainLine, toPlainLines } from "../../text.ts";

export type PrinterOutput = {
  /** Writes the model's answer. */
  writeAnswer(text: string): void;
  /** Writes activity. */
  writeNote(text: string): void;
  /** Also prints the user's own messages. */
  showsUsers: boolean;
  /** Escape sequences may be used in notes. */
  isColored: boolean;
};

type PartEvent = Extract<ChatEvent, { type: "message_part" }>["message_part"];

const MAX_ARGS_LENGTH = 200;

export class ChatPrinter {
  readonly #output: PrinterOutput;
  /** Streamed text of the current step. */
  #streamed = "";
  #step = "";
  readonly #printedCalls = new Set<string>();
  readonly #printedResults = new Set<string>();
  #newestId = 0;
  #queuedCount = 0;
  /** The last character written to either stream was a newline. */
  #isLineStart = true;

  constructor(output: PrinterOutput) {
    this.#output = output;
  }

  show(event: ChatEvent): void {
    if (event.type === "message_part") this.#printPart(event.message_part);
    else if (event.type === "message") this.#printMessage(event.message);
    else if (event.type === "history_reset") {
      this.#newestId = 0;
      this.#printRemark("[earlier messages were edited]");
    } else if (event.type === "retry") this.#retry(event.retry);
    else if (event.type === "queue_update") {
      const { length } = event.queued_messages;
      if (length > this.#queuedCount) this.#printRemark("[queued until the current turn ends]");
      this.#queuedCount = length;
    } else if (event.type === "action_required" && event.action_required.kind === undefined) {
      const names = event.action_required.tool_calls.map(({ tool_name }) => toPlainLine(tool_name)).join(", ");
      this.#printRemark(`[waiting for tool results from another client: ${names}]`);
    }
  }

  /** Prints a message that is not an event, on separate lines. */
  printNote(text: string): void {
    this.#printRemark(text);
  }

  /** Ends an unfinished line. */
  endLine(): void {
    if (this.#isLineStart) return;
    this.#output.writeAnswer("\n");
    this.#isLineStart = true;
  }

  #printPart({ history_version, generation_attempt, role, part }: PartEvent): void {
    const step = `${history_version}.${generation_attempt}`;
    if (step !== this.#step && this.#streamed !== "") {
      this.#printRemark("[starting over]");
      this.#streamed = "";
    }
    this.#step = step;
    if (part.type === "text") {
      this.#printText(part.text ?? "");
      this.#streamed += part.text ?? "";
    } else if (part.type === "reasoning") this.#printDim(part.text ?? "");
    else this.#printTool(part, role);
  }

  #printMessage({ id, role, content }: ChatMessage): void {
    if (id <= this.#newestId) return;
    this.#newestId = id;
    const text = content.flatMap((part) => (part.type === "text" ? [part.text ?? ""] : [])).join("");
    if (role === "user") {
      if (this.#output.showsUsers) {
        this.endLine();
        this.#printText(`> ${text.replaceAll("\n", "\n> ")}\n`);
      }
      return;
    }
    if (role === "assistant" && text !== "") {
      const continuesStreamed = text.startsWith(this.#streamed);
      if (!continuesStreamed) this.endLine();
      this.#printText(continuesStreamed ? text.slice(this.#streamed.length) : text);
      this.endLine();
    }
    this.#streamed = "";
    for (const part of content) this.#printTool(part, role);
  }

  #printTool(part: ChatMessagePart, role: string): void {
    const { type, tool_call_id = "", tool_name = "", args, result, result_delta } = part;
    if (type === "tool-call" && args !== undefined && !this.#printedCalls.has(tool_call_id)) {
      this.#printedCalls.add(tool_call_id);
      this.#printRemark(`▸ ${toPlainLine(tool_name)} ${formatArgs(args)}`);
    }
    if (type !== "tool-result" || role === "user") return;
    if (result_delta !== undefined) this.#printDim(result_delta);
    else if (result !== undefined && !this.#printedResults.has(tool_call_id))
      this.#printRemark(`◂ ${formatResult(result, part.is_error)}`);
    if (result !== undefined) this.#printedResults.add(tool_call_id);
  }

  #retry({ error, delay_ms }: Extract<ChatEvent, { type: "retry" }>["retry"]): void {
    this.#printRemark(`[${toPlainLine(error)} Retrying in ${Math.ceil(delay_ms / 1000)} s.]`);
  }

  #printText(text: string): void {
    const shown = toPlainLines(text);
    if (shown === "") return;
    this.#output.writeAnswer(shown);
    this.#isLineStart = shown.endsWith("\n");
  }

  #printDim(text: string): void {
    const shown = toPlainLines(text);
    if (shown === "") return;
    this.#output.writeNote(this.#output.isColored ? `\u001b[2m${shown}\u001b[22m` : shown);
    this.#isLineStart = shown.endsWith("\n");
  }

  /** Prints a note on separate lines. */
  #printRemark(text: string): void {
    this.#printDim(`${this.#isLineStart ? "" : "\n"}${text}\n`);
  }
}

const formatArgs = (args: unknown): string => {
  const { command } = (args ?? {}) as { command?: unknown };
  return truncateArgs(typeof command === "string" ? command : (JSON.stringify(args) ?? ""));
};

const formatResult = (result: unknown, isError = false): string => {
  const { error, exit_code } = (result ?? {}) as { error?: unknown; exit_code?: unknown };
  if (typeof error === "string") return truncateArgs(error);
  if (typeof exit_code === "number") return exit_code === 0 ? "done" : `exit code ${exit_code}`;
  return isError ? truncateArgs(JSON.stringify(result) ?? "failed") : "done";
};

const truncateArgs = (text: string): string => Bun.sliceAnsi(toPlainLine(text), 0, MAX_ARGS_LENGTH, { ellipsis: "…" });
