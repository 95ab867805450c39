// One turn of a chat with a coding agent, outside of the mailbox. Sends the agent the new messages and stores its output step by step. When
// the agent asks a person, the turn ends and the agent waits. The answer starts the next turn, which continues with the same agent.

import { log } from "#base/log.ts";
import { Slices } from "#base/retry.ts";
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
import {
  prepareStart,
  type SessionStart,
  type StartPlan,
  sendPrompt,
  withHistory,
  withStartNotice,
} from "./session-start.ts";
import { AgentStep, type UnfinishedCalls } from "./step.ts";
import { AgentTools } from "./tools.ts";
import { ensureWorkspaceStarted } from "./workspace.ts";

/** Maximum calls without a result in one step. More of them indicate a bug in the agent. */
const MAX_OPEN_CALLS = 500;
/** Maximum restarts of a crashed agent in one turn. */
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
  /** ID of the last message that the agent received. */
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
        const attempt = await this.#reporter.report("beginAttempt", { history_version });
        if (attempt === "stale" || this.isStopped) return;
        if ((await this.#runAttempt(attempt)) === "over" || this.isStopped) return;
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

  /** Cancels the agent's turn. The agent's output until then still belongs to the interrupted step. */
  async #cancel(session: AgentSession): Promise<void> {
    const step = this.#step;
    const events = await session.cancel();
    if (step && step === this.#step) this.#applyLateEvents(step, session, events);
  }

  /** Applies the output and results that arrived after the turn was stopped. */
  #applyLateEvents(step: AgentStep, session: AgentSession, events: readonly AgentEvent[]): void {
    const { clock } = this.#deps;
    for (const event of events) {
      if (event.type === "update") this.#applyUpdate(step, session, event);
      if (event.type === "written") step.endWrite(event.tool_call_id, event.error, clock.now());
      if (event.type === "ran") step.recordAnswer(event.tool_call_id, event.answer, clock.now());
    }
  }

  listPartialMessages(now: number): NewMessage[] {
    const session = this.#deps.sessions.findSession(this.#turn.chat_id);
    // Takes the output of an agent that has not stopped yet.
    if (this.#step && session) this.#applyLateEvents(this.#step, session, session.events.drain());
    const messages = this.#step?.toMessages(now, { error: "The call was interrupted." }) ?? [];
    this.#step = undefined;
    return messages;
  }

  async #runAttempt(attempt: StartedAttempt): Promise<NextAction> {
    const { clock, findProfile, sessions } = this.#deps;
    const name = attempt.coding_agent?.name ?? "";
    const profile = await findProfile(name);
    if (!profile) return this.#fail(attempt, { message: `The agent "${name}" of this chat was removed.` });
    const { display_name } = profile;
    if (attempt.compaction) {
      return this.#fail(attempt, { message: `${display_name} keeps its own context, which cannot be summarized.` });
    }
    const lastStep = sessions.findSession(this.#turn.chat_id)?.lastStep;
    const step = await this.#createStep(attempt);
    if (lastStep) step.takeCarriedCalls(lastStep, clock.now());
    if (this.isStopped) return "over";
    this.#step = step;
    this.#deliverAnswers(attempt, step, lastStep);
    if (step.isComplete) return this.#commit(attempt, step, "continue");
    let session: AgentSession | undefined;
    try {
      session = await this.#prepareSession(attempt, profile);
    } catch (error) {
      if (this.isStopped) return "over";
      const detail = (error as Error).message;
      return this.#fail(attempt, { message: `${display_name} could not be started.`, detail });
    }
    return session ? this.#processEvents(attempt, step, session) : "over";
  }

  async #createStep(attempt: StartedAttempt): Promise<AgentStep> {
    const { chat_id } = this.#turn;
    const { publish, toolServices } = this.#deps;
    const buffer = new StreamBuffer(chat_id, attempt.fence, (batch) => publish(chat_id, batch));
    this.buffer = buffer;
    const services = toolServices({ ...attempt.chat, chat_id, run_id: chat_id });
    const mask = new SecretMask(await services.loadSecrets());
    this.#mask = mask;
    return new AgentStep(
      mask,
      (part, role) => buffer.push(part, role),
      (id) => this.#deps.sessions.findSession(chat_id)?.terminals.readText(id),
      () => this.#deps.sessions.findSession(chat_id)?.questions.shell,
    );
  }

  /** Delivers people's answers to the agent's questions. A call that no agent runs anymore gets an error as its result. */
  #deliverAnswers(attempt: StartedAttempt, step: AgentStep, lastStep: AgentStep | undefined): void {
    const { clock, sessions } = this.#deps;
    const session = sessions.findSession(this.#turn.chat_id);
    const refused = new Map(attempt.refused);
    for (const call of attempt.calls) {
      const { tool_call_id } = call;
      const why = refused.get(tool_call_id);
      const wasOpen = session?.questions.answer(tool_call_id, why === undefined, true) === true;
      const agentHasCall = wasOpen || lastStep?.isUnfinished(tool_call_id) === true;
      step.addStoredCall(call, clock.now(), agentHasCall ? why : (why ?? RESTARTED));
    }
  }

  /**
   * Returns a session whose agent works on the prompt; undefined once the turn is over. Rejects with a readable message when no session can
   * be opened.
   */
  async #prepareSession(attempt: StartedAttempt, profile: CodingAgent): Promise<AgentSession | undefined> {
    const { chat_id } = this.#turn;
    const { signal } = this.#abort;
    const plan = await withHistory(this.#deps, attempt, { hasFiles: false, signal }, (history) =>
      prepareStart(this.#deps, chat_id, attempt, history, profile),
    );
    if (!plan || this.isStopped) return undefined;
    if ("running" in plan) return plan.running;
    const usedUp = await this.#deps.budgets.findUsedUp(toBudgetRef(attempt));
    if (this.isStopped) return undefined;
    if (usedUp) {
      await pauseTurn(this.#reporter, attempt.fence, usedUp);
      return undefined;
    }
    await ensureWorkspaceStarted(this.#deps, { chat_id, chat: attempt.chat, profile }, signal);
    if (this.isStopped) return undefined;
    const session = await this.#openSession(attempt, profile, plan);
    if (this.isStopped) return undefined;
    const { context, isChatInSession, previous } = plan;
    await session.applyOptions(attempt.chat.plan_mode !== null, attempt.coding_agent?.session?.chosen ?? {});
    if (this.isStopped) return undefined;
    const knowsHistory = session === previous || session.replayed !== undefined;
    const lacksTools = !session.hasTools && (await session.tools.hasTools(signal));
    this.#warn([
      ...(isChatInSession && !knowsHistory ? [SESSION_LOST] : []),
      ...(lacksTools ? [`${profile.display_name} ${NO_HTTP_MCP}`] : []),
    ]);
    const { introduction } = context;
    return withHistory(this.#deps, attempt, { hasFiles: true, signal }, (history) =>
      this.#sendPrompt(attempt, session, history, { introduction, knowsHistory, isNew: session !== previous }),
    );
  }

  async #openSession(
    attempt: StartedAttempt,
    profile: CodingAgent,
    { context, isChatInSession, previous }: StartPlan,
  ): Promise<AgentSession> {
    const { modelTokens, sessions } = this.#deps;
    const { chat_id, part } = this.#turn;
    const { signal } = this.#abort;
    // Waits for the daemon of a workspace that has just started.
    const agent = new WorkspaceAgent(this.#deps, { ...attempt.chat, chat_id, run_id: chat_id }, true);
    const model_tokens = modelTokens({ agent_id: await agent.id(), chat_id, owner_id: attempt.chat.owner_id });
    const tools = previous?.tools ?? new AgentTools(this.#deps, chat_id, attempt);
    const open = (stored_session_id: string | undefined): Promise<AgentSession> =>
      sessions.open(part, agent, { chat_id, profile, stored_session_id, model_tokens, tools, context, signal });
    const stored_session_id = isChatInSession ? attempt.coding_agent?.session?.session_id : undefined;
    const opened = open(stored_session_id).catch((error) => {
      if (stored_session_id === undefined || this.isStopped) throw error;
      // The agent may have crashed while it loaded the session. A new session gets the conversation as text.
      return open(undefined);
    });
    const session = await withStartNotice(this.#deps, chat_id, profile, opened);
    sessions.markUsed(chat_id);
    return session;
  }

  #warn(texts: readonly string[]): void {
    const { warnings } = this.#deps;
    const { chat_id } = this.#turn;
    if (!Bun.deepEquals(texts, warnings.from("agent", chat_id))) warnings.set("agent", chat_id, texts);
  }

  /** Records the session and sends the agent its prompt. Returns undefined once the turn is over. */
  async #sendPrompt(
    attempt: StartedAttempt,
    session: AgentSession,
    history: readonly MessageRow[],
    start: SessionStart & { readonly isNew: boolean },
  ): Promise<AgentSession | undefined> {
    const { chat_id } = this.#turn;
    const { signal } = this.#abort;
    if (start.isNew) {
      const used = await retryUntilAnswered(this.#deps.clock, signal, () =>
        readUsedCallIds(this.#deps.store, attempt.chat_key),
      );
      if (used === "stale") return undefined;
      session.questions.reserve(used);
    }
    this.#lastMessageId = history.at(-1)?.id ?? 0;
    if (!(await this.#recordSession(session))) return undefined;
    await createCheckpoint(this.#deps, { ...attempt.chat, chat_id }, history, {
      waits: this.#waitsForWorkspace,
      signal,
    });
    if (this.isStopped) return undefined;
    session.tools.begin(attempt);
    await sendPrompt(this.#deps, attempt, session, history, start, { chat_id, signal });
    return this.isStopped ? undefined : session;
  }

  /** Stores the agent's session ID, the last message it received, and its options. Resolves to false once the turn is over. */
  async #recordSession(session: AgentSession): Promise<boolean> {
    const { session_id } = session;
    const { options } = this.#mask?.result({ options: session.options }) ?? session;
    const record = { history_version: this.history_version, session_id, through: this.#lastMessageId, options };
    return (await this.#reporter.report("recordAgentSession", record)) !== "stale";
  }

  /** Processes the agent's events until the step can be stored, and stores it. */
  async #processEvents(attempt: StartedAttempt, step: AgentStep, session: AgentSession): Promise<NextAction> {
    const slices = new Slices(this.#deps.clock);
    for (;;) {
      // Taking an event that is already waiting does not yield to the event loop.
      await slices.next();
      const event = await session.next(this.#abort.signal);
      if (this.isStopped && event?.type === "asked") event.answer(undefined);
      if (event && this.isStopped) this.#applyLateEvents(step, session, [event]);
      if (!event || this.isStopped) return "over";
      const nextAction = await this.#handleEvent(attempt, step, session, event);
      if (this.isStopped) return "over";
      if (nextAction) return nextAction;
      if (!step.isComplete) continue;
      for (const id of step.endedCallIds) session.finishedCalls.add(id);
      return this.#commit(attempt, step, "continue");
    }
  }

  /** Handles one event. Returns undefined while the step continues. */
  async #handleEvent(
    attempt: StartedAttempt,
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
          return this.#fail(attempt, { message: `${display_name} has failed.`, detail });
        }
        if (!OPTION_UPDATES.has(event.update.sessionUpdate)) return undefined;
        return (await this.#recordSession(session)) ? undefined : "over";
      case "asked":
        return this.#decideRequest(attempt, step, session, event);
      case "written":
        step.endWrite(event.tool_call_id, event.error, clock.now());
        return undefined;
      case "ran":
        step.recordAnswer(event.tool_call_id, event.answer, clock.now());
        return undefined;
      case "printed":
        event.onHandled();
        step.onTerminalOutput(event.terminal_id);
        return undefined;
      case "refused":
        if (!(await this.#deps.budgets.findUsedUp(toBudgetRef(attempt)))) return undefined;
        // The agent's output from before the refusal can arrive after it.
        this.#applyLateEvents(step, session, await session.cancel());
        // The next attempt pauses the turn before it sends a prompt.
        return this.#commit(attempt, step, "continue", { error: BUDGET_USED_UP });
      case "ended": {
        const failure = STOP_FAILURES[event.stop];
        if (failure) return this.#fail(attempt, { message: `${display_name} ${failure}` });
        return this.#commit(attempt, step, "finish");
      }
      case "failed":
        return this.#handleFailure(attempt, step, display_name, event);
    }
  }

  /** Fails the turn, or restarts an agent that has crashed. */
  async #handleFailure(
    attempt: StartedAttempt,
    step: AgentStep,
    display_name: string,
    { reason, isGone, limit_exceeded }: Extract<AgentEvent, { type: "failed" }>,
  ): Promise<NextAction> {
    if (limit_exceeded !== undefined || !isGone) {
      return this.#fail(attempt, { message: `${display_name} has failed.`, detail: limit_exceeded ?? reason });
    }
    this.#restarts += 1;
    log("chats").warn("the agent of chat {chat_id} ended: {reason}", { chat_id: this.#turn.chat_id, reason });
    if (this.#restarts <= MAX_RESTARTS) return this.#commit(attempt, step, "continue", { error: RESTARTED });
    return this.#fail(attempt, { message: `${display_name} ended unexpectedly.`, detail: reason });
  }

  #applyUpdate(
    step: AgentStep,
    { questions, finishedCalls }: AgentSession,
    { update }: { readonly update: SessionUpdate },
  ): void {
    step.applyUpdate(update, this.#deps.clock.now(), (id) => questions.toChatCallId(id), finishedCalls);
    // Output of a running command says nothing new about it.
    if ("toolCallId" in update && (update.rawInput || update.title || update.kind))
      questions.shell.record(step.preview({ toolCallId: questions.toChatCallId(update.toolCallId) }));
  }

  /** Decides a request for permission by the chat's rules and hooks, or stores it as a question to a person, which ends the turn. */
  async #decideRequest(
    attempt: StartedAttempt,
    step: AgentStep,
    session: AgentSession,
    request: AgentQuestion,
  ): Promise<NextAction | undefined> {
    const { clock, store } = this.#deps;
    const { chat_id } = this.#turn;
    const { questions, finishedCalls } = session;
    const hasEnded = (call_id: string): boolean => finishedCalls.has(call_id) || step.isOver(call_id);
    const { question, replaced_id } = questions.register(request, hasEnded);
    const { isWrite, serverCall } = question;
    const id = question.call.toolCallId;
    if (replaced_id !== undefined && !questions.isOpen(replaced_id)) {
      step.refuse(replaced_id, CALL_REPLACED, clock.now());
    }
    if (isWrite && (await this.#isApprovedWrite(session, toChatTool(step.preview(question.call))))) {
      questions.answer(id, true);
      return undefined;
    }
    const resolved = isWrite ? question.call : await this.#resolvePaths(step, session, question.call);
    if (this.isStopped) return "over";
    const call = resolved ?? question.call;
    const tool = serverCall ?? toChatTool(step.preview(call), questions.shell);
    if (!serverCall) questions.shell.record(step.preview(call));
    questions.show(id, tool);
    const rules = await retryUntilAnswered(clock, this.#abort.signal, () =>
      loadCurrentRules(store, { chat_id, attempt, tool, session }),
    );
    if (rules === "stale") return "over";
    const { current, folder } = rules;
    // A tool that was offered before the owner switched to plan mode may change something.
    const wasOfferedInThisMode = current.chat.plan_mode === null || attempt.chat.plan_mode !== null;
    const isOffered = wasOfferedInThisMode && serverCall !== undefined && serverCall.tool_name !== "execute";
    const verdict = resolved ? decideAgentCall(chat_id, current, tool, folder, isOffered) : PATHS_UNRESOLVED;
    const isAlreadyApproved =
      serverCall !== undefined && verdict.action === "ask" && questions.useCallGrant(serverCall);
    const refusal = verdict.action === "deny" ? [verdict.why] : await this.#findHookRefusal(attempt, step, id, tool);
    if (!refusal || this.isStopped) return "over";
    const [why] = refusal;
    if (why !== undefined) {
      step.addCall(call, clock.now(), serverCall);
      step.refuse(id, why, clock.now());
      questions.answer(id, false);
      return undefined;
    }
    if (verdict.action === "allow" || isAlreadyApproved) {
      if (!isWrite && !serverCall) step.addCall(call, clock.now());
      questions.answer(id, true);
      return undefined;
    }
    step.addCall(call, clock.now(), serverCall);
    for (const ended of step.endedCallIds) finishedCalls.add(ended);
    return this.#commit(attempt, step, "act", { asked: id });
  }

  /** Returns whether a person has approved an edit that produces exactly this file. */
  async #isApprovedWrite(session: AgentSession, { args }: ChatTool): Promise<boolean> {
    const { questions } = session;
    const path = String(args.path);
    if (!questions.hasEditGrant(path)) return false;
    return questions.useEditGrant(path, String(args.content), await session.readText(path, this.#abort.signal));
  }

  /**
   * Replaces paths of an edit that lead outside of the agent's folder, for example through a symbolic link, with the real paths, so that
   * rules and people decide about the real paths. Returns undefined when the workspace cannot resolve them.
   */
  async #resolvePaths(
    step: AgentStep,
    session: AgentSession,
    call: ToolCallUpdate,
  ): Promise<ToolCallUpdate | undefined> {
    const completeCall = step.preview(call);
    const { tool_name, args } = toChatTool(completeCall);
    if (!isEdit(tool_name)) return call;
    const realPaths = await session
      .resolveOutside(getPaths(args).map(String), this.#abort.signal)
      .catch(() => undefined);
    if (!realPaths) return undefined;
    return realPaths.size === 0 ? call : Object.assign({}, call, replacePaths(completeCall, realPaths));
  }

  /** Returns why a lifecycle hook refuses the call, as a list with one item; empty if no hook does, undefined once the turn is over. */
  async #findHookRefusal(
    attempt: StartedAttempt,
    step: AgentStep,
    tool_use_id: string,
    { tool_name, args }: ChatTool,
  ): Promise<readonly string[] | undefined> {
    if (this.#deps.hooks.isOff) return [];
    const options = { tool_input: JSON.stringify(args), accepts: () => false };
    const messages = step.toMessages(this.#deps.clock.now(), { error: RESTARTED });
    return this.#reporter.askHooks(attempt, messages, async () => {
      const data = { tool_use_id, tool_name };
      const { permission, denial } = await this.#hooks.ask(attempt, "pre_tool_use", data, options);
      return permission?.decision === "deny" ? [denial ?? formatDenial(permission.reason ?? "")] : [];
    });
  }

  /** Fails the turn. Masks secrets in `detail`, which may be output of the agent's program. */
  #fail(attempt: StartedAttempt, { message, detail: unmasked = "" }: Failure): Promise<NextAction> {
    const detail = this.#mask?.text(unmasked) ?? unmasked;
    const error: ChatError = { kind: "generic", message, ...(detail ? { detail } : {}), retryable: true };
    return this.#commit(attempt, this.#step, error, { error: RESTARTED });
  }

  /** Stores the step. By default, calls without a result are carried into the next step; the end of the turn closes them with an error. */
  async #commit(
    attempt: StartedAttempt,
    step: AgentStep | undefined,
    end: "continue" | "act" | "finish" | ChatError,
    unfinished: UnfinishedCalls = end === "finish" ? NO_RESULT : "carried",
  ): Promise<NextAction> {
    const { clock, sessions } = this.#deps;
    this.buffer?.close();
    const messages = step?.toMessages(clock.now(), unfinished) ?? [];
    const rows = await this.#reporter.askHooks(attempt, messages, async () => [
      ...(await this.#hooks.onAnswered(attempt, step?.answered ?? [])),
      ...(end === "finish" ? await this.#hooks.askForRows(attempt, "stop") : []),
    ]);
    if (!rows) return "over";
    const report = { fence: attempt.fence, messages: [...messages, ...rows] };
    const session = sessions.findSession(this.#turn.chat_id);
    const isClosed = unfinished !== "carried" && "error" in unfinished;
    if (session) session.lastStep = isClosed ? undefined : step;
    session?.reportTouchedFiles(messages.flatMap(({ content }) => content));
    const reported = await this.#reporter.report("reportStep", toStep(report, end));
    if (reported === "stale" || !reported.continues) return "over";
    this.history_version = reported.history_version;
    return "again";
  }
}

const NO_RESULT: UnfinishedCalls = { error: "The agent ended its turn without a result." };

type Report = Pick<Step, "fence" | "messages">;

const toStep = (report: Report, then: "continue" | "act" | "finish" | ChatError): Step =>
  typeof then === "string" ? { ...report, then } : toFailedStep(report, then);

const toFailedStep = (report: Report, error: ChatError, then = "fail" as const): Step => ({ ...report, then, error });

type RulesOptions = {
  readonly chat_id: string;
  readonly attempt: StartedAttempt;
  readonly tool: ChatTool;
  readonly session: Pick<AgentSession, "folder">;
};

/**
 * Returns the chat's current mode and rules, which its owner may have changed since the turn began, and the folder that the decision about
 * the call depends on.
 */
const loadCurrentRules = async (
  store: Store,
  { chat_id, attempt, tool, session }: RulesOptions,
): Promise<{ current: Pick<StartedAttempt, "chat" | "permissions">; folder: string | undefined }> => {
  const stored = await store.get(findChat({ id: chat_id }));
  const current = stored
    ? { chat: { ...attempt.chat, plan_mode: stored.plan_mode }, permissions: stored.permissions }
    : attempt;
  if (tool.tool_name === "execute") return { current, folder: session.folder };
  const acceptsEdits = current.permissions?.default === "accept_edits";
  return { current, folder: acceptsEdits ? await loadAgentFolder(store, attempt.chat.workspace_id) : undefined };
};

const toBudgetRef = ({ chat_key, chat: { owner_id } }: StartedAttempt) => ({ chat_key, owner_id });

/** The stop reasons that count as a failure, as the rest of a sentence that begins with the agent's name. */
const STOP_FAILURES: Readonly<Record<string, string | undefined>> = {
  max_tokens: "has reached its limit of tokens.",
  max_turn_requests: "has reached its limit of model calls in one turn.",
  refusal: "refused to continue.",
};
