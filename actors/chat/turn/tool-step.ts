// Runs the tool calls of one step, a few at a time, outside of the mailbox. Followers get the output live. The results become messages in
// the order of the calls. After a crash, calls without a result run again under the same IDs (rule TO-8).

import { toRfc3339 } from "#base/clock.ts";
import { ConcurrencyLimit } from "#base/concurrency-limit.ts";
import { sha256, uuidFromBytes } from "#base/ids.ts";
import { nextTurn } from "#base/retry.ts";
import { AnswerMemory } from "#base/system/answer-memory.ts";
import type { HookFailure } from "#src/hooks/protocol.ts";
import { HeadTailBuffer } from "#src/tools/cut.ts";
import { findApprovedEditProblem, findLinkProblem } from "#src/tools/files/real-path.ts";
import { type ChatSecrets, SecretMask } from "#src/tools/mask.ts";
import { isAcceptedByMode } from "#src/tools/permission.ts";
import { isEdit } from "#src/tools/permission-mode.ts";
import { execute } from "#src/tools/processes/execute.ts";
import { findToolUse, isTurnEnding, returnsImage } from "#src/tools/registry.ts";
import { runTool, type ToolAnswer } from "#src/tools/run.ts";
import type { ToolServices } from "#src/tools/services.ts";
import { StepBudget } from "#src/tools/step-budget.ts";
import { waitAgent } from "#src/tools/subagents/wait-agent.ts";
import type { AnsweredCall } from "../hooks/turn-hooks.ts";
import type { NewMessage, PendingCall } from "../machine/decision.ts";
import { toolMessage } from "../machine/draft.ts";
import type { StartedAttempt } from "../messages.ts";
import { loadAgentFolder, splitAgentArgument } from "./agent-choice.ts";
import type { McpOffer } from "./mcp.ts";
import { toServerField } from "./mcp-turn.ts";
import { toToolScope } from "./offer.ts";
import type { StreamBuffer } from "./stream-buffer.ts";
import { type AgentDeps, WorkspaceAgent } from "./tool-agent.ts";

/** Tools that wait for a command or sub-chat. An interrupt of the call also ends the command or sub-chat (rules TO-5, SB-7). */
const WAITING_TOOLS: ReadonlySet<string> = new Set([execute.name, waitAgent.name]);
/** Maximum concurrent calls of one step. Each may hold a response of the workspace or of an MCP server in memory. */
const MAX_CONCURRENT = 8;
/** Maximum size of the output that is stored for an interrupted call. */
const MAX_PARTIAL_BYTES = 8_192;

type WithMcp = { readonly mcp: McpOffer };
type TimedAnswer = ToolAnswer & { readonly at: number };

export class ToolStep {
  readonly #deps: AgentDeps;
  readonly #chat_id: string;
  readonly #attempt: Pick<StartedAttempt, "calls" | "fence" | "chat" | "chat_key" | "context_limit" | "permissions"> &
    WithMcp;
  /** Why calls are not run, by call ID. */
  readonly #refused: Map<string, string>;
  readonly #buffer: StreamBuffer;
  readonly #answers = new Map<PendingCall, TimedAnswer>();
  /** The output of running calls. */
  readonly #outputs = new Map<PendingCall, HeadTailBuffer>();
  readonly #limit = new ConcurrencyLimit(MAX_CONCURRENT);
  readonly #budget: StepBudget;
  readonly #waitingCalls: Promise<void>[] = [];
  /** The secrets at the start of the step, shared by all calls. */
  #secrets: Promise<{ readonly secrets: ChatSecrets; readonly mask: SecretMask }> | undefined;
  /** A hook gave no valid decision about a message to another chat, which ends the turn (rule HK-9). */
  failure: HookFailure | undefined;
  /** Whether calls wait for the daemon to reconnect, because a previous server process has started the turn. */
  readonly #waitsForDaemon: boolean;

  constructor(
    deps: AgentDeps,
    chat_id: string,
    attempt: StartedAttempt & WithMcp,
    buffer: StreamBuffer,
    waitsForDaemon = false,
  ) {
    this.#waitsForDaemon = waitsForDaemon;
    this.#deps = deps;
    this.#chat_id = chat_id;
    this.#attempt = attempt;
    this.#refused = new Map(attempt.refused);
    this.#buffer = buffer;
    this.#budget = new StepBudget(attempt.context_limit);
  }

  /** Resolves when every call has a result. Rejects with the signal's reason as soon as it aborts. */
  run(signal: AbortSignal): Promise<unknown> {
    const all = Promise.all(this.#attempt.calls.map((call) => this.#start(call, signal)));
    return new Promise((resolve, reject) => {
      const onAbort = () => reject(signal.reason);
      if (signal.aborted) onAbort();
      signal.addEventListener("abort", onAbort, { once: true });
      all.then(resolve, reject).finally(() => signal.removeEventListener("abort", onAbort));
    });
  }

  /** Resolves when the commands and sub-chats have ended for which calls wait. An interrupt ends them. */
  get whenEnded(): Promise<unknown> {
    return Promise.allSettled(this.#waitingCalls);
  }

  /** Returns one message per call, in order. A call without an answer gets its output so far and `error`. */
  toMessages(now: number, error: string): NewMessage[] {
    return this.#attempt.calls.map((call) => {
      const { tool_call_id, tool_name } = call;
      const { result, is_error, at } = this.#answers.get(call) ?? this.#toPartialAnswer(call, now, error);
      const server = toServerField(this.#attempt.mcp, tool_name);
      const media = this.#toMediaFlag(tool_name, is_error, result);
      return toolMessage({ tool_call_id, tool_name, result, is_error, ...media, ...server, now: at });
    });
  }

  /** The calls that ran, with their results. */
  get answered(): AnsweredCall[] {
    return this.#attempt.calls.flatMap((call) => {
      const answer = this.#answers.get(call);
      return answer && !this.#refused.has(call.tool_call_id) ? [{ call, ...answer }] : [];
    });
  }

  /** Whether a call of a tool that ends the turn has succeeded. */
  get endsTurn(): boolean {
    return [...this.#answers].some(([{ tool_name }, { is_error }]) => !is_error && isTurnEnding(tool_name));
  }

  /**
   * Runs the call when fewer than the maximum are running. A call that waits for a sub-chat does not count, because it holds no memory
   * and may take hours.
   */
  #start(call: PendingCall, signal: AbortSignal): Promise<void> {
    const run = async (): Promise<void> => {
      if (signal.aborted) return;
      const done = this.#runCall(call, signal);
      if (WAITING_TOOLS.has(call.tool_name)) this.#waitingCalls.push(done);
      await done;
      await nextTurn();
    };
    return call.tool_name === waitAgent.name ? run() : this.#limit.run(run);
  }

  async #runCall(call: PendingCall, signal: AbortSignal): Promise<void> {
    const { clock } = this.#deps;
    const { chat, chat_key, context_limit } = this.#attempt;
    const { tool_call_id, tool_name } = call;
    const again = this.#attempt.fence.generation_attempt > 1;
    this.#outputs.set(call, new HeadTailBuffer(MAX_PARTIAL_BYTES));
    const run_id = toRunId(this.#chat_id, call);
    const { agent: name, args } = splitAgentArgument(call);
    const scope = { ...chat, chat_id: this.#chat_id, run_id };
    const services = this.#deps.toolServices(scope);
    this.#secrets ??= services.loadSecrets().then((secrets) => ({ secrets, mask: new SecretMask(secrets) }));
    const { secrets, mask } = await this.#secrets;
    using memory = new AnswerMemory({ clock, share: this.#deps.memory, holder: chat.owner_id, signal });
    const agentOptions = { name, wakeSignal: signal, memory };
    const agent = new WorkspaceAgent(this.#deps, scope, again || this.#waitsForDaemon, agentOptions);
    const failed = (failure: HookFailure): void => {
      this.failure ??= failure;
    };
    const context = {
      clock,
      again,
      run_id,
      context_limit,
      mask,
      memory,
      agent,
      agent_name: name,
      loadFolder: () => loadAgentFolder(this.#deps.store, chat.workspace_id),
      services,
      skills: this.#deps.skills({ chat_key, owner_id: chat.owner_id }),
      agents: this.#deps.subagents({ chat_id: this.#chat_id, run_id, call, failed }),
      reset: () => {
        if (signal.aborted) return;
        this.#outputs.set(call, new HeadTailBuffer(MAX_PARTIAL_BYTES));
        this.#buffer.push({ type: "tool-result", tool_call_id, tool_name, result_reset: true }, "tool");
      },
      write: (result_delta: string) => {
        if (signal.aborted) return;
        this.#outputs.get(call)?.add(result_delta);
        this.#buffer.push({ type: "tool-result", tool_call_id, tool_name, result_delta }, "tool");
      },
    };
    const refusal = await this.#findRefusal(call, args, agent, signal);
    const toolScope = toToolScope(this.#chat_id, chat);
    const mcpTool = this.#attempt.mcp.get(tool_name)?.tool;
    const rawAnswer =
      refusal === undefined
        ? await runTool(toolScope, { tool_name, args }, context, signal, mcpTool)
        : { result: { error: refusal }, is_error: true };
    if (signal.aborted) return;
    const answer = this.#budget.fit(addNote(await maskNewSecrets(services, secrets, rawAnswer), call));
    if (!signal.aborted) this.#addAnswer(call, { ...answer, at: clock.now() });
  }

  /** Returns why the call must not run. `args`: the call's arguments without the agent's name. */
  async #findRefusal(
    call: PendingCall,
    args: unknown,
    agent: WorkspaceAgent,
    signal: AbortSignal,
  ): Promise<string | undefined> {
    const { tool_call_id, tool_name } = call;
    // The budget's reason would invite the model to repeat the call, so it does not replace another reason.
    const budgetRefusal = this.#refused.has(tool_call_id) ? undefined : this.#budget.refusal;
    if (budgetRefusal !== undefined) this.#refused.set(tool_call_id, budgetRefusal);
    const refusal = this.#refused.get(tool_call_id);
    if (refusal !== undefined) return refusal;
    if (this.#isAcceptedByMode(call)) return findLinkProblem(agent, args, signal);
    // While a person was deciding, a link may have replaced the file.
    if (call.permission === "granted" && isEdit(tool_name)) return findApprovedEditProblem(agent, args, signal);
    return undefined;
  }

  #addAnswer(call: PendingCall, answer: TimedAnswer): void {
    const { tool_call_id, tool_name } = call;
    const { result, is_error, at } = answer;
    this.#answers.set(call, answer);
    const part = {
      type: "tool-result",
      tool_call_id,
      tool_name,
      result,
      is_error,
      ...this.#toMediaFlag(tool_name, is_error, result),
      ...toServerField(this.#attempt.mcp, tool_name),
      created_at: toRfc3339(at),
    } as const;
    this.#buffer.push(part, "tool");
  }

  /** Returns whether the call needs no approval only because of the chat's mode, which was decided by the paths as the model wrote them. */
  #isAcceptedByMode({ tool_name, args, permission }: PendingCall): boolean {
    const use = findToolUse(tool_name, toToolScope(this.#chat_id, this.#attempt.chat));
    return (
      permission !== "granted" && use === "yes" && isAcceptedByMode(this.#attempt.permissions, { tool_name, args })
    );
  }

  /** Marks a result with images. An MCP server's result can have images only after its files are stored. */
  #toMediaFlag(tool_name: string, is_error: boolean, result: ToolAnswer["result"]): { is_media?: true } {
    const hasStoredFiles = this.#attempt.mcp.get(tool_name)?.tool.gives_image === true && Array.isArray(result.files);
    return (returnsImage(tool_name) || hasStoredFiles) && !is_error ? { is_media: true } : {};
  }

  #toPartialAnswer(call: PendingCall, at: number, error: string): TimedAnswer {
    const output = this.#outputs.get(call)?.result.text ?? "";
    return { result: { ...(output === "" ? {} : { output }), error }, is_error: true, at };
  }
}

/** Masks secrets that are new since the call began, for example because the call renewed the token of a linked account. */
const maskNewSecrets = async (
  services: Pick<ToolServices, "loadSecrets">,
  previous: ChatSecrets,
  answer: ToolAnswer,
): Promise<ToolAnswer> => {
  const secrets = await services.loadSecrets();
  if (Bun.deepEquals(secrets, previous)) return answer;
  return { ...answer, result: new SecretMask(secrets).result(answer.result) };
};

/** Adds the note that tells the model how to call the tool next time. */
const addNote = (answer: ToolAnswer, { note }: PendingCall): ToolAnswer =>
  note === undefined ? answer : { ...answer, result: { ...answer.result, arguments_note: note } };

/** Returns an ID that is the same for every run of the call. */
export const toRunId = (chat_id: string, { message_id, tool_call_id }: PendingCall): string =>
  uuidFromBytes(Buffer.from(sha256(`${chat_id} ${message_id} ${tool_call_id}`), "hex").subarray(0, 16));
