// One turn of a chat that a coding agent runs, outside of the mailbox. Sends the agent the new messages and stores its output step by step,
// as Slipway's own loop does. A question of the agent ends the turn; the answer begins the next one, which continues with the waiting
// agent.

import { log } from "#base/log.ts";
import { nextTurn } from "#base/retry.ts";
import { findChat } from "#db/chats/chats.ts";
import type { MessageRow } from "#db/chats/messages.ts";
import type { Store } from "#db/engine/store.ts";
import type { CodingAgent } from "#schema/ai/coding-agents.ts";
import type { ChatError } from "#schema/chats/chat-error.ts";
import { type ChatTool, replacePaths, toChatTool } from "#src/acp/calls.ts";
import type { SessionUpdate, ToolCallUpdate } from "#src/acp/connection.ts";
import { SecretMask } from "#src/tools/mask.ts";
import { getPaths, isEdit } from "#src/tools/permission-mode.ts";
import { INTERRUPTED_REASON } from "#src/tools/tool.ts";
import type { TurnStart } from "../effects.ts";
import { formatDenial } from "../hooks/proposals.ts";
import { TurnHooks } from "../hooks/turn-hooks.ts";
import type { NewMessage } from "../machine/decision.ts";
import type { StartedAttempt, Step } from "../messages.ts";
import { loadAgentFolder } from "../turn/agent-choice.ts";
import { readUsedCallIds } from "../turn/call-ids.ts";
import { createCheckpoint } from "../turn/checkpoints.ts";
import type { RunningTurn } from "../turn/engine.ts";
import { pauseTurn } from "../turn/failed-call.ts";
import { Reporter } from "../turn/reporter.ts";
import type { TurnScope } from "../turn/slot.ts";
import { StreamBuffer } from "../turn/stream-buffer.ts";
import { WorkspaceAgent } from "../turn/tool-agent.ts";
import { retryUntilAnswered } from "../until-answered.ts";
import { decideAgentCall, type Verdict } from "./call-decision.ts";
import type { AgentTurnDeps } from "./deps.ts";
import type { AgentEvent, AgentQuestion } from "./events.ts";
import type { AgentSession } from "./session.ts";
import { prepareStart, type SessionStart, sendPrompt, withHistory, withStartNotice } from "./session-start.ts";
import { AgentStep } from "./step.ts";
import { AgentTools } from "./tools.ts";
import { ensureWorkspaceStarted } from "./workspace.ts";

/** How long a busy agent may keep the event loop before it yields. */
const MAX_SLICE_MS = 5;
/** Maximum open calls of one step. More indicates a bug in the agent. */
const MAX_OPEN_CALLS = 500;
/** How often a crashed agent is restarted in one turn. */
const MAX_RESTARTS = 2;
const RESTARTED = "The agent was restarted before this call had a result.";
const CALL_REPLACED = "The agent reused this call's ID for another call, so this call's result is unknown.";
const PATHS_UNRESOLVED: Verdict = { action: "deny", why: "The workspace did not say where these files are." };
const BUDGET_USED_UP = "A budget was used up before this call had a result.";
const SESSION_LOST =
  "The agent could not load its session. It was given the conversation as text, and may have forgotten details of its earlier work.";

const NO_HTTP_MCP = "does not support MCP servers over HTTP, so it cannot use the ones of this chat.";

/** Updates that report changed options of the agent. */
const OPTION_UPDATES: ReadonlySet<string> = new Set(["current_mode_update", "config_option_update"]);

/** Whether the turn continues with another attempt. */
type NextAction = "again" | "over";
type Failure = { readonly message: string; readonly detail?: string };
export class AgentTurn implements RunningTurn {
  readonly #deps: AgentTurnDeps;
  readonly #turn: TurnScope;
  readonly #abort = new AbortController();
  readonly #reporter: Reporter;
  readonly #hooks: TurnHooks;
  readonly #waitsForWorkspace: boolean;
  readonly recording = undefined;
  history_version: number;
  buffer: StreamBuffer | undefined;
  whenEnded: Promise<unknown> | undefined;
  #step: AgentStep | undefined;
  #mask: SecretMask | undefined;
  #restarts = 0;
  /** The last message that the agent got, as stored. */
  #lastMessageId = 0;

  constructor(deps: AgentTurnDeps, scope: TurnScope, { isResumed = false }: TurnStart) {
    this.#deps = deps;
    this.#turn = scope;
    this.#waitsForWorkspace = isResumed;
    this.history_version = scope.history_version;
    this.#reporter = new Reporter(deps, scope.chat_id, this.#abort.signal);
    this.#hooks = new TurnHooks(deps, scope.chat_id, this.#abort.signal);
  }

  get isStopped(): boolean {
    return this.#abort.signal.aborted;
  }

  async run(): Promise<void> {
    const { sessions, budgets } = this.#deps;
    const { chat_id } = this.#turn;
    sessions.markUsed(chat_id);
    const unsubscribe = budgets.onRefused(chat_id, () =>
      sessions.findSession(chat_id)?.events.push({ type: "refused" }),
    );
    try {
      for (;;) {
        const { history_version } = this;
        const begun = await this.#reporter.report("beginAttempt", { history_version });
        if (begun === "stale" || this.isStopped) return;
        if ((await this.#attempt(begun)) === "over" || this.isStopped) return;
      }
    } finally {
      unsubscribe();
      sessions.markIdle(chat_id);
    }
  }

  stop(reason: Error): void {
    const { sessions } = this.#deps;
    const { chat_id } = this.#turn;
    this.#abort.abort(reason);
    this.buffer?.close();
    const session = sessions.findSession(chat_id);
    if (session && reason === INTERRUPTED_REASON) this.whenEnded = this.#cancel(session);
    else sessions.end(chat_id);
  }

  /** Cancels the agent's turn. Output until it ends still belongs to the interrupted turn. */
  async #cancel(session: AgentSession): Promise<void> {
    const step = this.#step;
    const late = await session.cancel();
    if (step && step === this.#step) this.#applyLateEvents(step, session, late);
  }

  #applyLateEvents(step: AgentStep, session: AgentSession, late: readonly AgentEvent[]): void {
    const { clock } = this.#deps;
    for (const event of late) {
      if (event.type === "update") this.#applyUpdate(step, session, event);
      if (event.type === "written") step.endWrite(event.tool_call_id, event.error, clock.now());
      if (event.type === "ran") step.ran(event.tool_call_id, event.answer, clock.now());
    }
  }

  listPartialMessages(now: number): NewMessage[] {
    const session = this.#deps.sessions.findSession(this.#turn.chat_id);
    // An agent that is slow to stop may already have produced output.
    if (this.#step && session) this.#applyLateEvents(this.#step, session, session.events.drain());
    const messages = this.#step?.messages(now, { error: "The call was interrupted." }) ?? [];
    this.#step = undefined;
    return messages;
  }

  async #attempt(begun: StartedAttempt): Promise<NextAction> {
    const { clock } = this.#deps;
    const { name, profile } = await this.#profile(begun);
    if (!profile) return this.#fail(begun, { message: `The agent "${name}" of this chat was removed.` });
    if (begun.compaction) {
      return this.#fail(begun, {
        message: `${profile.display_name} keeps its own context, which cannot be summarized.`,
      });
    }
    const before = this.#deps.sessions.findSession(this.#turn.chat_id)?.step;
    const step = await this.#createStep(begun);
    if (before) step.carry(before, clock.now());
    if (this.isStopped) return "over";
    this.#step = step;
    this.#deliverAnswers(begun, step, before);
    if (step.isComplete) return this.#commit(begun, step, "continue");
    let session: AgentSession | undefined;
    try {
      session = await this.#prepareSession(begun, profile);
    } catch (error) {
      if (this.isStopped) return "over";
      const detail = (error as Error).message;
      return this.#fail(begun, { message: `${profile.display_name} could not be started.`, detail });
    }
    return session ? this.#follow(begun, step, session) : "over";
  }

  async #profile({ coding_agent }: StartedAttempt) {
    const name = coding_agent?.name ?? "";
    return { name, profile: await this.#deps.findProfile(name) };
  }

  async #createStep(begun: StartedAttempt): Promise<AgentStep> {
    const { chat_id } = this.#turn;
    const { publish, toolServices } = this.#deps;
    const buffer = new StreamBuffer(chat_id, begun.fence, (batch) => publish(chat_id, batch));
    this.buffer = buffer;
    const services = toolServices({ ...begun.about, chat_id, run_id: chat_id });
    const mask = new SecretMask(await services.loadSecrets());
    this.#mask = mask;
    return new AgentStep(
      mask,
      (part, role) => buffer.push(part, role),
      (id) => this.#deps.sessions.findSession(chat_id)?.terminals.readText(id),
      () => this.#deps.sessions.findSession(chat_id)?.questions.shell,
    );
  }

  /** Delivers people's answers to open questions. A call that no agent runs anymore gets an error as its result. */
  #deliverAnswers(begun: StartedAttempt, step: AgentStep, before: AgentStep | undefined): void {
    const { clock, sessions } = this.#deps;
    const session = sessions.findSession(this.#turn.chat_id);
    const refused = new Map(begun.refused);
    for (const call of begun.calls) {
      const { tool_call_id } = call;
      const why = refused.get(tool_call_id);
      const isAnswered = session?.questions.answer(tool_call_id, why === undefined, true) === true;
      const isAgentWaiting = isAnswered || before?.isRunning(tool_call_id) === true;
      step.adopt(call, clock.now(), isAgentWaiting ? why : (why ?? RESTARTED));
    }
  }

  /**
   * Returns the session once the agent works on the prompt; undefined if this turn has ended. Rejects with a readable message when there is
   * no session.
   */
  async #prepareSession(begun: StartedAttempt, profile: CodingAgent): Promise<AgentSession | undefined> {
    const { sessions } = this.#deps;
    const { chat_id, part } = this.#turn;
    const stored = begun.coding_agent?.session ?? null;
    const { signal } = this.#abort;
    const plan = await withHistory(this.#deps, begun, { hasFiles: false, signal }, (history) =>
      prepareStart(this.#deps, chat_id, begun, history, profile),
    );
    if (!plan || this.isStopped) return undefined;
    if ("running" in plan) return plan.running;
    const { context, isChatInSession, live } = plan;
    const usedUp = await this.#deps.budgets.findUsedUp(toBudgetRef(begun));
    if (this.isStopped) return undefined;
    if (usedUp) {
      await pauseTurn(this.#reporter, begun.fence, usedUp);
      return undefined;
    }
    await ensureWorkspaceStarted(this.#deps, { chat_id, chat: begun.about, profile }, signal);
    if (this.isStopped) return undefined;
    // The daemon of a workspace that has just started may still be connecting.
    const agent = new WorkspaceAgent(this.#deps, { ...begun.about, chat_id, run_id: chat_id }, true);
    const { plan_mode, owner_id } = begun.about;
    const model_tokens = this.#deps.modelTokens({ agent_id: await agent.id(), chat_id, owner_id });
    const tools = live?.tools ?? new AgentTools(this.#deps, chat_id, begun);
    const open = (load: string | undefined): Promise<AgentSession> =>
      sessions.open(part, agent, { chat_id, profile, load, model_tokens, tools, given: context, signal });
    const load = isChatInSession ? stored?.session_id : undefined;
    const opened = open(load).catch((error) => {
      if (load === undefined || this.isStopped) throw error;
      // The agent crashed while it loaded the session. A new session gets the conversation as text.
      return open(undefined);
    });
    const session = await withStartNotice(this.#deps, chat_id, profile, opened);
    sessions.markUsed(chat_id);
    if (this.isStopped) return undefined;
    await session.applyOptions(plan_mode !== null, stored?.chosen ?? {});
    if (this.isStopped) return undefined;
    const isSame = session === live || session.replayed !== undefined;
    const lacksTools = !session.hasTools && (await session.tools.hasTools(signal));
    this.#warn([
      ...(isChatInSession && !isSame ? [SESSION_LOST] : []),
      ...(lacksTools ? [`${profile.display_name} ${NO_HTTP_MCP}`] : []),
    ]);
    const { introduction } = context;
    return withHistory(this.#deps, begun, { hasFiles: true, signal }, (history) =>
      this.#prompt(begun, session, history, { introduction, isSame, isNew: session !== live }),
    );
  }

  #warn(found: readonly string[]): void {
    const { warnings } = this.#deps;
    const { chat_id } = this.#turn;
    if (!Bun.deepEquals(found, warnings.from("agent", chat_id))) warnings.set("agent", chat_id, found);
  }

  /** Sends the agent what is new to it. Returns undefined once this turn is over. */
  async #prompt(
    begun: StartedAttempt,
    session: AgentSession,
    history: readonly MessageRow[],
    start: SessionStart & { readonly isNew: boolean },
  ): Promise<AgentSession | undefined> {
    const { chat_id } = this.#turn;
    const { signal } = this.#abort;
    if (start.isNew) {
      const used = await retryUntilAnswered(this.#deps.clock, signal, () =>
        readUsedCallIds(this.#deps.store, begun.chat_key),
      );
      if (used === "stale") return undefined;
      session.questions.reserve(used);
    }
    this.#lastMessageId = history.at(-1)?.id ?? 0;
    if (!(await this.#record(session))) return undefined;
    await createCheckpoint(this.#deps, { ...begun.about, chat_id }, history, {
      waits: this.#waitsForWorkspace,
      signal,
    });
    if (this.isStopped) return undefined;
    session.tools.begin(begun);
    await sendPrompt(this.#deps, begun, session, history, start, { chat_id, signal });
    return this.isStopped ? undefined : session;
  }

  /** Stores the agent's session ID, the last message it received, and its options. Resolves to false once the turn is over. */
  async #record(session: AgentSession): Promise<boolean> {
    const { session_id } = session;
    const { options } = this.#mask?.result({ options: session.options }) ?? session;
    const asked = { history_version: this.history_version, session_id, through: this.#lastMessageId, options };
    return (await this.#reporter.report("recordAgentSession", asked)) !== "stale";
  }

  /** Processes the agent's events until there is something to store. */
  async #follow(begun: StartedAttempt, step: AgentStep, session: AgentSession): Promise<NextAction> {
    const { clock } = this.#deps;
    let since = clock.monotonic();
    for (;;) {
      // Waiting events are taken without yielding to the event loop.
      if (clock.monotonic() - since >= MAX_SLICE_MS) {
        await nextTurn();
        since = clock.monotonic();
      }
      const event = await session.next(this.#abort.signal);
      if (this.isStopped && event?.type === "asked") event.answer(undefined);
      if (event && this.isStopped) this.#applyLateEvents(step, session, [event]);
      if (!event || this.isStopped) return "over";
      const then = await this.#handleEvent(begun, step, session, event);
      if (this.isStopped) return "over";
      if (then) return then;
      if (!step.isComplete) continue;
      for (const id of step.ended) session.done.add(id);
      return this.#commit(begun, step, "continue");
    }
  }

  /** Processes one event. Returns undefined while the step continues. */
  async #handleEvent(
    begun: StartedAttempt,
    step: AgentStep,
    session: AgentSession,
    event: AgentEvent,
  ): Promise<NextAction | undefined> {
    const { clock } = this.#deps;
    const { display_name } = session.profile;
    switch (event.type) {
      case "update":
        this.#applyUpdate(step, session, event);
        if (step.openCalls > MAX_OPEN_CALLS || step.isTooLarge) {
          this.#deps.sessions.end(this.#turn.chat_id);
          const detail = step.isTooLarge
            ? "It has written more than a message of a chat can contain."
            : `It has more than ${MAX_OPEN_CALLS} calls without a result.`;
          return this.#fail(begun, { message: `${display_name} has failed.`, detail });
        }
        if (!OPTION_UPDATES.has(event.update.sessionUpdate)) return undefined;
        return (await this.#record(session)) ? undefined : "over";
      case "asked":
        return this.#decide(begun, step, session, event);
      case "written":
        step.endWrite(event.tool_call_id, event.error, clock.now());
        return undefined;
      case "ran":
        step.ran(event.tool_call_id, event.answer, clock.now());
        return undefined;
      case "printed":
        event.onHandled();
        step.onTerminalOutput(event.terminal_id);
        return undefined;
      case "refused":
        if (!(await this.#deps.budgets.findUsedUp(toBudgetRef(begun)))) return undefined;
        // Output from before the refusal can arrive after it.
        this.#applyLateEvents(step, session, await session.cancel());
        // The next attempt pauses before it prompts.
        return this.#commit(begun, step, "continue", BUDGET_USED_UP);
      case "ended": {
        const failure = STOP_REASONS[event.stop];
        if (failure) return this.#fail(begun, { message: `${display_name} ${failure}` });
        return this.#commit(begun, step, "finish");
      }
      case "failed":
        if (event.limit_exceeded !== undefined)
          return this.#fail(begun, { message: `${display_name} has failed.`, detail: event.limit_exceeded });
        if (!event.isGone) return this.#fail(begun, { message: `${display_name} has failed.`, detail: event.reason });
        this.#restarts += 1;
        log("chats").warn("the agent of chat {chat_id} ended: {reason}", {
          chat_id: this.#turn.chat_id,
          reason: event.reason,
        });
        if (this.#restarts <= MAX_RESTARTS) return this.#commit(begun, step, "continue", RESTARTED);
        return this.#fail(begun, { message: `${display_name} ended unexpectedly.`, detail: event.reason });
    }
  }

  #applyUpdate(
    step: AgentStep,
    { questions, done }: AgentSession,
    { update }: { readonly update: SessionUpdate },
  ): void {
    step.applyUpdate(update, this.#deps.clock.now(), (id) => questions.toChatCallId(id), done);
    // Output of a running command says nothing new about it.
    if ("toolCallId" in update && (update.rawInput || update.title || update.kind))
      questions.shell.record(step.preview({ toolCallId: questions.toChatCallId(update.toolCallId) }));
  }

  /** Decides a question of the agent: by rules and hooks, or by storing it as a question to a person. */
  async #decide(
    begun: StartedAttempt,
    step: AgentStep,
    session: AgentSession,
    requested: AgentQuestion,
  ): Promise<NextAction | undefined> {
    const { clock, store } = this.#deps;
    const { chat_id } = this.#turn;
    const { questions, done } = session;
    const isOver = (one: string): boolean => done.has(one) || step.isOver(one);
    const { asked, former } = questions.register(requested, isOver);
    const id = asked.call.toolCallId;
    if (former !== undefined && !questions.isOpen(former)) step.refuse(former, CALL_REPLACED, clock.now());
    if (asked.isWrite && (await this.#matchesApprovedEdit(session, toChatTool(step.preview(asked.call))))) {
      questions.answer(id, true);
      return undefined;
    }
    const located = asked.isWrite ? asked.call : await this.#resolvePaths(step, session, asked.call);
    if (this.isStopped) return "over";
    const call = located ?? asked.call;
    const { own } = asked;
    const tool = own ?? toChatTool(step.preview(call), questions.shell);
    if (!own) questions.shell.record(step.preview(call));
    questions.show(id, tool);
    const rules = await retryUntilAnswered(clock, this.#abort.signal, () =>
      loadCurrentRules(store, { chat_id, begun, tool, session }),
    );
    if (rules === "stale") return "over";
    const { current, folder } = rules;
    // What the chat offered before its owner chose to plan may change something.
    const isOffered = current.about.plan_mode === null || begun.about.plan_mode !== null;
    const verdict = located
      ? decideAgentCall(chat_id, current, tool, folder, isOffered && own !== undefined && own.tool_name !== "execute")
      : PATHS_UNRESOLVED;
    const isAlreadyApproved = own !== undefined && verdict.action === "ask" && questions.useCallGrant(own);
    const refusal = verdict.action === "deny" ? [verdict.why] : await this.#hookRefusal(begun, step, id, tool);
    if (!refusal || this.isStopped) return "over";
    const [why] = refusal;
    if (why !== undefined) {
      step.addCall(call, clock.now(), own);
      step.refuse(id, why, clock.now());
      questions.answer(id, false);
      return undefined;
    }
    if (verdict.action === "allow" || isAlreadyApproved) {
      if (!asked.isWrite && !own) step.addCall(call, clock.now());
      questions.answer(id, true);
      return undefined;
    }
    step.addCall(call, clock.now(), own);
    for (const ended of step.ended) done.add(ended);
    return this.#commit(begun, step, "act", undefined, id);
  }

  /** Returns whether the write produces exactly the file that the approved edit displayed. */
  async #matchesApprovedEdit(session: AgentSession, { args }: ChatTool): Promise<boolean> {
    const { questions } = session;
    const path = String(args.path);
    if (!questions.hasGrant(path)) return false;
    return questions.useGrant(path, String(args.content), await session.readText(path, this.#abort.signal));
  }

  /**
   * Returns the call with the real paths of files whose real path differs or is outside the agent's folder, for example through a symbolic
   * link, so that rules and people decide about the real paths.
   * Returns undefined when the workspace cannot resolve them.
   */
  async #resolvePaths(
    step: AgentStep,
    session: AgentSession,
    call: ToolCallUpdate,
  ): Promise<ToolCallUpdate | undefined> {
    const whole = step.preview(call);
    const { tool_name, args } = toChatTool(whole);
    if (!isEdit(tool_name)) return call;
    const realPaths = await session
      .resolveOutside(getPaths(args).map(String), this.#abort.signal)
      .catch(() => undefined);
    if (!realPaths) return undefined;
    return realPaths.size === 0 ? call : Object.assign({}, call, replacePaths(whole, realPaths));
  }

  /** Returns why a lifecycle hook refuses the call; empty when it allows it, undefined once the turn is over. */
  async #hookRefusal(
    begun: StartedAttempt,
    step: AgentStep,
    tool_use_id: string,
    { tool_name, args }: ReturnType<typeof toChatTool>,
  ): Promise<readonly string[] | undefined> {
    if (this.#deps.hooks.isOff) return [];
    const more = { tool_input: JSON.stringify(args), accepts: () => false };
    const messages = step.messages(this.#deps.clock.now(), { error: RESTARTED });
    return this.#reporter.askHooks(begun, messages, async () => {
      const { permission, denial } = await this.#hooks.ask(begun, "pre_tool_use", { tool_use_id, tool_name }, more);
      return permission?.decision === "deny" ? [denial ?? formatDenial(permission.reason ?? "")] : [];
    });
  }

  /** `detail` may be output of the agent's program. */
  #fail(begun: StartedAttempt, { message, detail: given = "" }: Failure): Promise<NextAction> {
    const detail = this.#mask?.text(given) ?? given;
    const error: ChatError = { kind: "generic", message, ...(detail ? { detail } : {}), retryable: true };
    return this.#commit(begun, this.#step, error, RESTARTED);
  }

  /** Stores the step. `error` closes open calls; `asked` is the call that waits for a person. */
  async #commit(
    begun: StartedAttempt,
    step: AgentStep | undefined,
    end: "continue" | "act" | "finish" | ChatError,
    error?: string,
    asked?: string,
  ): Promise<NextAction> {
    const { clock } = this.#deps;
    this.buffer?.close();
    const closing = error ?? (end === "finish" ? "The agent ended its turn without a result." : undefined);
    const open = asked === undefined ? (closing === undefined ? "carried" : { error: closing }) : { asked };
    const messages = step?.messages(clock.now(), open) ?? [];
    const rows = await this.#reporter.askHooks(begun, messages, async () => [
      ...(await this.#hooks.onAnswered(begun, step?.answered ?? [])),
      ...(end === "finish" ? await this.#hooks.askForRows(begun, "stop") : []),
    ]);
    if (!rows) return "over";
    const report = { fence: begun.fence, messages: [...messages, ...rows] };
    const stored = toStep(report, end);
    const session = this.#deps.sessions.findSession(this.#turn.chat_id);
    if (session) session.step = closing === undefined ? step : undefined;
    session?.reportTouched(messages.flatMap(({ content }) => content));
    const reported = await this.#reporter.report("reportStep", stored);
    if (reported === "stale" || !reported.goes_on) return "over";
    this.history_version = reported.history_version;
    return "again";
  }
}

type Report = Pick<Step, "fence" | "messages">;

const toStep = (report: Report, then: "continue" | "act" | "finish" | ChatError): Step =>
  typeof then === "string" ? { ...report, then } : toFailedStep(report, then);

const toFailedStep = (report: Report, error: ChatError, then = "fail" as const): Step => ({ ...report, then, error });

type RulesOptions = {
  readonly chat_id: string;
  readonly begun: StartedAttempt;
  readonly tool: ChatTool;
  readonly session: Pick<AgentSession, "folder">;
};

/**
 * Returns the chat's mode and rules as they are now, because its owner may have changed them since the turn has begun, and the folder that
 * the decision about the call depends on.
 */
const loadCurrentRules = async (
  store: Store,
  { chat_id, begun, tool, session }: RulesOptions,
): Promise<{ current: Pick<StartedAttempt, "about" | "permissions">; folder: string | undefined }> => {
  const { about } = begun;
  const chat = await store.get(findChat({ id: chat_id }));
  const current = chat
    ? { about: { ...about, plan_mode: chat.plan_mode }, permissions: chat.permissions }
    : { about, permissions: begun.permissions };
  if (tool.tool_name === "execute") return { current, folder: session.folder };
  const acceptsEdits = current.permissions?.default === "accept_edits";
  return { current, folder: acceptsEdits ? await loadAgentFolder(store, about.workspace_id) : undefined };
};

const toBudgetRef = ({ chat_key, about: { owner_id } }: StartedAttempt) => ({ chat_key, owner_id });

const STOP_REASONS: Readonly<Record<string, string | undefined>> = {
  max_tokens: "has reached its limit of tokens.",
  max_turn_requests: "has reached its limit of model calls in one turn.",
  refusal: "refused to continue.",
};
