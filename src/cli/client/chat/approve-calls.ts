// Answers calls of a chat that wait for approval: according to the option `--permissions`, or by prompting at the terminal. Without a
// terminal they are only reported, and someone else may answer (rules CV-15 to CV-17). Used by follow.ts.
import type { Clock } from "#base/clock.ts";
import { pause } from "#base/retry.ts";
import { usageError } from "#base/usage-error.ts";
import type { ActionRequired, ChatEvent, ToolCallRequest } from "#schema/chats/chat-event.ts";
import type { PermissionAnswers } from "#schema/chats/chat-permissions.ts";
import { ApiError, type Client } from "#src/client.ts";
import { getStreams } from "../../streams.ts";
import { toPlainLine } from "../../text.ts";
import { TypedLines } from "../../typed-lines.ts";
import type { VerbInput } from "../../verb.ts";
import { formatRequest, formatRequestLine } from "./permission-text.ts";

const PERMISSION_CHOICES = ["ask", "allow", "deny"] as const;
export type PermissionWay = (typeof PERMISSION_CHOICES)[number];

/** Parses the value of `--permissions`. Throws UsageError. */
export const parsePermissionWay = (given: string | undefined): PermissionWay => {
  const found = PERMISSION_CHOICES.find((one) => one === (given ?? "ask"));
  if (!found) throw usageError("--permissions", `expected ${PERMISSION_CHOICES.join(", ")}`);
  return found;
};

/** True if someone at the terminal can read and answer questions. */
export const isAttended = (input: VerbInput): boolean => input.isTerminal && getStreams(input).inputIsTerminal;

export type PermissionDeskOptions = {
  readonly client: Client;
  readonly way: PermissionWay;
  /** Prints events without prompting. */
  readonly json: boolean;
  /** Prints a message on a separate line. */
  readonly note: (text: string) => void;
};

type Answer = PermissionAnswers["answers"][number];
/** Calls of a chat that are approved together. */
type PendingCalls = {
  readonly chat_id: string;
  readonly calls: ActionRequired["tool_calls"];
  /** Title of the sub-chat, if any. */
  readonly title: string | undefined;
  readonly withdrawn: AbortSignal;
};
type Choice = Pick<Answer, "decision" | "scope">;

const CHOICES: Readonly<Record<string, Choice>> = {
  y: { decision: "allow", scope: "once" },
  a: { decision: "allow", scope: "always" },
  n: { decision: "deny", scope: "once" },
  v: { decision: "deny", scope: "always" },
};
const NAMES: Readonly<Record<string, string>> = { yes: "y", always: "a", no: "n", never: "v" };
const RETRY_INTERVAL_MS = 1_000;
const QUESTION = "Allow it? y = once, a = always, n = no, v = never: ";

export class PermissionDesk {
  readonly #options: PermissionDeskOptions;
  readonly #lines: TypedLines | undefined;
  readonly #clock: Clock;
  /** The calls being prompted for, by chat. */
  readonly #open = new Map<string, { readonly key: string; readonly withdrawn: AbortController }>();
  #answering: Promise<void> = Promise.resolve();

  constructor(input: VerbInput, options: PermissionDeskOptions) {
    this.#options = options;
    this.#clock = input.clock;
    const canAsk = options.way === "ask" && !options.json && isAttended(input);
    this.#lines = canAsk ? new TypedLines(getStreams(input), input.clock, input.printError) : undefined;
  }

  /** Handles an event. `title` is that of the sub-chat it belongs to. */
  handleEvent(event: ChatEvent, title?: string): void {
    const { type, chat_id } = event;
    if (type === "status" && event.status.status !== "requires_action") this.#withdraw(chat_id);
    if (type !== "action_required") return;
    const { kind, tool_calls } = event.action_required;
    const key = tool_calls.map(({ tool_call_id }) => tool_call_id).join("\n");
    // After a reconnect, the stream repeats requests that are already being prompted for.
    if (kind === "permission" && this.#open.get(chat_id)?.key === key) return;
    this.#withdraw(chat_id);
    if (kind !== "permission") return;
    const withdrawn = new AbortController();
    this.#open.set(chat_id, { key, withdrawn });
    const request = { chat_id, calls: tool_calls, title, withdrawn: withdrawn.signal };
    this.#answering = this.#answering.then(() => this.#answerCalls(request));
  }

  /** Stops prompting. */
  async close(): Promise<void> {
    for (const chat_id of [...this.#open.keys()]) this.#withdraw(chat_id);
    await this.#answering;
  }

  #withdraw(chat_id: string): void {
    this.#open.get(chat_id)?.withdrawn.abort();
    this.#open.delete(chat_id);
  }

  /** Never rejects; errors are printed. */
  async #answerCalls(request: PendingCalls): Promise<void> {
    const { way, note, json } = this.#options;
    const { calls, withdrawn, chat_id } = request;
    if (withdrawn.aborted) return;
    const requested = calls.map(formatRequestLine).join("; ");
    if (way !== "ask") {
      if (!json) note(`[${way === "allow" ? "allowed" : "denied"}: ${requested}]`);
      const answers = calls.map(({ tool_call_id }): Answer => ({ tool_call_id, decision: way }));
      while ((await this.#send(request, answers)) === "again" && !withdrawn.aborted)
        await pause(this.#clock, RETRY_INTERVAL_MS);
      return;
    }
    if (this.#lines) return this.#promptFor(this.#lines, request);
    if (!json) note(`[asks for permission: ${requested} (\`slipway chat watch ${chat_id}\` on a terminal answers it)]`);
  }

  async #promptFor(lines: TypedLines, request: PendingCalls): Promise<void> {
    const { note } = this.#options;
    const { calls, withdrawn, title, chat_id } = request;
    const answers: Answer[] = [];
    for (let at = 0; at < calls.length; ) {
      const call = calls[at] as ToolCallRequest;
      note(formatRequest(call, title).trimEnd());
      const answer = await this.#choose(lines, call, withdrawn);
      if (withdrawn.aborted) return note("\n[no longer waiting for approval]");
      if (!answer) return note(`\n[not answered; \`slipway chat watch ${chat_id}\` asks again]`);
      answers.push(answer);
      at += 1;
      if (at < calls.length) continue;
      const outcome = await this.#send(request, answers);
      if (outcome === "taken") return this.#printStoredRules(request, answers);
      if (outcome === "over") return;
      // Prompts again, starting with the call whose answer was refused.
      at = outcome === "again" ? 0 : outcome;
      answers.length = at;
    }
  }

  async #choose(lines: TypedLines, call: ToolCallRequest, withdrawn: AbortSignal): Promise<Answer | undefined> {
    for (;;) {
      const typed = (await lines.line(QUESTION, withdrawn))?.toLowerCase();
      if (typed === undefined) return undefined;
      const choice = CHOICES[NAMES[typed] ?? typed];
      if (!choice) continue;
      const answer = { tool_call_id: call.tool_call_id, ...choice };
      if (choice.scope !== "always" || call.tool_name !== "execute") return answer;
      const words = choice.decision === "allow" ? "Always allow" : "Never allow";
      const command = await lines.line(
        `${words} commands that start with (Enter: the first words of this command): `,
        withdrawn,
      );
      if (command === undefined) return undefined;
      return command === "" ? answer : { ...answer, command };
    }
  }

  /**
   * Sends the answers. Returns `over` if the calls no longer need an answer from this user, `again` if it should be retried, or the index
   * of an answer that the server rejected.
   */
  async #send(
    { chat_id, withdrawn }: PendingCalls,
    answers: readonly Answer[],
  ): Promise<"taken" | "over" | "again" | number> {
    const { client, note } = this.#options;
    try {
      await client.post(`/api/v2/chats/${chat_id}/permissions`, { answers });
      return "taken";
    } catch (error) {
      const refusal = error instanceof ApiError ? error : undefined;
      if (refusal?.status === 409 || withdrawn.aborted) {
        note("[already answered by someone else]");
        return "over";
      }
      const [invalidField] = refusal?.body.validations ?? [];
      const words = invalidField?.detail ?? (error instanceof Error ? error.message : String(error));
      note(`[the answer was rejected: ${toPlainLine(words)}]`);
      const index = /^answers\.(\d+)/.exec(invalidField?.field ?? "")?.[1];
      if (index !== undefined) return Number(index);
      return refusal && refusal.status < 500 ? "over" : "again";
    }
  }

  /** Prints the rules that were stored and will not be asked for again. */
  async #printStoredRules({ chat_id }: PendingCalls, answers: readonly Answer[]): Promise<void> {
    const kept = answers.filter(({ scope }) => scope === "always").length;
    if (kept === 0) return;
    const { client, note } = this.#options;
    const chat = await client.get(`/api/v2/chats/${chat_id}`).catch(() => undefined);
    for (const { tool, command, action } of chat?.permissions?.rules.slice(0, kept) ?? []) {
      const what = toPlainLine(command === undefined ? tool : `${tool} ${command}`);
      note(`[from now on ${what} is ${action === "allow" ? "allowed" : "denied"} in this chat]`);
    }
  }
}
