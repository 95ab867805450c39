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

const PERMISSION_POLICIES = ["ask", "allow", "deny"] as const;
export type PermissionPolicy = (typeof PERMISSION_POLICIES)[number];

/** Parses the value of `--permissions`. Throws UsageError. */
export const parsePermissionPolicy = (given: string | undefined): PermissionPolicy => {
  const found = PERMISSION_POLICIES.find((one) => one === (given ?? "ask"));
  if (!found) throw usageError("--permissions", `expected ${PERMISSION_POLICIES.join(", ")}`);
  return found;
};

/** True if someone at the terminal can read and answer questions. */
export const isAttended = (input: VerbInput): boolean => input.isTerminal && getStreams(input).inputIsTerminal;

export type PermissionDeskOptions = {
  readonly client: Client;
  readonly policy: PermissionPolicy;
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
  readonly #openRequests = new Map<string, { readonly key: string; readonly withdrawn: AbortController }>();
  #answering: Promise<void> = Promise.resolve();

  constructor(input: VerbInput, options: PermissionDeskOptions) {
    this.#options = options;
    this.#clock = input.clock;
    const canPrompt = options.policy === "ask" && !options.json && isAttended(input);
    this.#lines = canPrompt ? new TypedLines(getStreams(input), input.clock, input.printError) : undefined;
  }

  /** Handles an event. `title` is the title of the sub-chat that the event belongs to. */
  handleEvent(event: ChatEvent, title?: string): void {
    const { type, chat_id } = event;
    if (type === "status" && event.status.status !== "requires_action") this.#withdraw(chat_id);
    if (type !== "action_required") return;
    const { kind, tool_calls } = event.action_required;
    const key = tool_calls.map(({ tool_call_id }) => tool_call_id).join("\n");
    // After a reconnect, the stream repeats requests that are already being prompted for.
    if (kind === "permission" && this.#openRequests.get(chat_id)?.key === key) return;
    this.#withdraw(chat_id);
    if (kind !== "permission") return;
    const withdrawn = new AbortController();
    this.#openRequests.set(chat_id, { key, withdrawn });
    const request = { chat_id, calls: tool_calls, title, withdrawn: withdrawn.signal };
    this.#answering = this.#answering.then(() => this.#answerCalls(request));
  }

  /** Stops prompting. */
  async close(): Promise<void> {
    for (const chat_id of [...this.#openRequests.keys()]) this.#withdraw(chat_id);
    await this.#answering;
  }

  #withdraw(chat_id: string): void {
    this.#openRequests.get(chat_id)?.withdrawn.abort();
    this.#openRequests.delete(chat_id);
  }

  /** Never rejects; errors are printed. */
  async #answerCalls(request: PendingCalls): Promise<void> {
    const { policy, note, json } = this.#options;
    const { calls, withdrawn, chat_id } = request;
    if (withdrawn.aborted) return;
    const requested = calls.map(formatRequestLine).join("; ");
    if (policy !== "ask") {
      if (!json) note(`[${policy === "allow" ? "allowed" : "denied"}: ${requested}]`);
      const answers = calls.map(({ tool_call_id }): Answer => ({ tool_call_id, decision: policy }));
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
    for (let index = 0; index < calls.length; ) {
      const call = calls[index] as ToolCallRequest;
      note(formatRequest(call, title).trimEnd());
      const answer = await this.#choose(lines, call, withdrawn);
      if (withdrawn.aborted) return note("\n[no longer waiting for approval]");
      if (!answer) return note(`\n[not answered; \`slipway chat watch ${chat_id}\` asks again]`);
      answers.push(answer);
      index += 1;
      if (index < calls.length) continue;
      const outcome = await this.#send(request, answers);
      if (outcome === "accepted") return this.#printStoredRules(request, answers);
      if (outcome === "over") return;
      // Prompts again, starting with the call whose answer was refused.
      index = outcome === "again" ? 0 : outcome;
      answers.length = index;
    }
  }

  async #choose(lines: TypedLines, call: ToolCallRequest, withdrawn: AbortSignal): Promise<Answer | undefined> {
    for (;;) {
      const typed = (await lines.readLine(QUESTION, withdrawn))?.toLowerCase();
      if (typed === undefined) return undefined;
      const choice = CHOICES[NAMES[typed] ?? typed];
      if (!choice) continue;
      const answer = { tool_call_id: call.tool_call_id, ...choice };
      if (choice.scope !== "always" || call.tool_name !== "execute") return answer;
      const prompt = choice.decision === "allow" ? "Always allow" : "Never allow";
      const command = await lines.readLine(
        `${prompt} commands that start with (Enter: the first words of this command): `,
        withdrawn,
      );
      if (command === undefined) return undefined;
      return command === "" ? answer : { ...answer, command };
    }
  }

  /**
   * Sends the answers. Returns `over` if the calls no longer need an answer from this user, `again` if the answers should be sent again,
   * or the index of an answer that the server rejected.
   */
  async #send(
    { chat_id, withdrawn }: PendingCalls,
    answers: readonly Answer[],
  ): Promise<"accepted" | "over" | "again" | number> {
    const { client, note } = this.#options;
    try {
      await client.post(`/api/v2/chats/${chat_id}/permissions`, { answers });
      return "accepted";
    } catch (error) {
      const refusal = error instanceof ApiError ? error : undefined;
      if (refusal?.status === 409 || withdrawn.aborted) {
        note("[already answered by someone else]");
        return "over";
      }
      const [invalidField] = refusal?.body.validations ?? [];
      const reason = invalidField?.detail ?? (error instanceof Error ? error.message : String(error));
      note(`[the answer was rejected: ${toPlainLine(reason)}]`);
      const index = /^answers\.(\d+)/.exec(invalidField?.field ?? "")?.[1];
      if (index !== undefined) return Number(index);
      return refusal && refusal.status < 500 ? "over" : "again";
    }
  }

  /** Prints the rules that were stored. Calls that they match need no approval in the future. */
  async #printStoredRules({ chat_id }: PendingCalls, answers: readonly Answer[]): Promise<void> {
    const ruleCount = answers.filter(({ scope }) => scope === "always").length;
    if (ruleCount === 0) return;
    const { client, note } = this.#options;
    const chat = await client.get(`/api/v2/chats/${chat_id}`).catch(() => undefined);
    for (const { tool, command, action } of chat?.permissions?.rules.slice(0, ruleCount) ?? []) {
      const calls = toPlainLine(command === undefined ? tool : `${tool} ${command}`);
      note(`[from now on ${calls} is ${action === "allow" ? "allowed" : "denied"} in this chat]`);
    }
  }
}
