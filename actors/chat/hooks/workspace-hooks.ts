// Runs the hooks that a chat's workspace declares (facts/agents A37, docs/hooks.md), if an administrator has allowed them. Asks the daemon
// for them, runs the ones that match an event, one after another, and validates their answers like the answers of the operator's hook. A
// failure denies the event if it can be denied (rules HK-19 to HK-21). Runs outside of every mailbox.
import { uuid } from "#base/ids.ts";
import { log } from "#base/log.ts";
import type { DeclaredHooks } from "#schema/agents/workspace-hooks.ts";
import { parseAnswer } from "#src/hooks/answer.ts";
import { encodeBody } from "#src/hooks/exchange.ts";
import type { DispatchRecord } from "#src/hooks/hooks.ts";
import { applyOverride, mergeAnswers } from "#src/hooks/merge.ts";
import {
  AnswerProblem,
  type HookAnswer,
  type HookEvent,
  type HookRequest,
  NO_DECISION,
  toDecision,
} from "#src/hooks/protocol.ts";
import type { SecretMask } from "#src/tools/mask.ts";
import { isServerTool, worksInWorkspace } from "#src/tools/registry.ts";
import { HookAgent, type HookAgentDeps, HookProblem, isProblem, RUN_TIMEOUT_MS, toProblem } from "./hook-agent.ts";

/** Total time for the hooks of one event. The daemon allows each hook five seconds. */
const EVENT_TIMEOUT_MS = 10_000;

/** The workspace agent that runs the hooks, and the secrets to mask in their answers. */
type FoundHookAgent = NonNullable<Awaited<ReturnType<HookAgent["find"]>>>;

type Deps = HookAgentDeps & { readonly recordsContents: boolean };

/** Stores the record of a hook's run. Throws `HookFailure` when that fails. */
type StoreRecord = (entry: DispatchRecord) => Promise<void>;

export class WorkspaceHooks {
  readonly #deps: Deps;
  readonly #agent: HookAgent;

  constructor(deps: Deps) {
    this.#deps = deps;
    this.#agent = new HookAgent(deps);
  }

  /**
   * Returns the decision of the workspace's hooks, or `NO_DECISION` when none is declared. Throws the reason of `signal`, and anything that
   * `storeRecord` throws.
   */
  async decide(request: HookRequest, storeRecord: StoreRecord, signal: AbortSignal | undefined): Promise<HookAnswer> {
    const target = await this.#agent.find(request);
    if (target === undefined) return NO_DECISION;
    const { agent_id } = target;
    const isNeeded = needsWorkspace(request);
    let declared: DeclaredHooks;
    try {
      declared = await this.#agent.listHooks(agent_id, isNeeded, signal);
    } catch (error) {
      signal?.throwIfAborted();
      // An event that does not need the workspace continues without its hooks. Otherwise, no call could start a stopped workspace.
      if (!isNeeded) return NO_DECISION;
      return this.#onFailure(request, toProblem(error), "", storeRecord);
    }
    if (declared.error !== "") {
      return this.#onFailure(request, new HookProblem("protocol_error", declared.error), "", storeRecord);
    }
    const { revision, hooks } = declared;
    const deadline = this.#deps.clock.monotonic() + EVENT_TIMEOUT_MS;
    let answer = NO_DECISION;
    for (const { name, event, matcher } of hooks) {
      if (event !== request.event || !matchesTool(matcher, request)) continue;
      const timeout_ms = Math.min(deadline - this.#deps.clock.monotonic(), RUN_TIMEOUT_MS);
      const hook = { ...target, revision, name, timeout_ms };
      // Each hook decides about the arguments as the previous hooks have changed them.
      const next = await this.#askHook(hook, applyOverride(request, answer), storeRecord, signal);
      answer = mergeAnswers(answer, next);
      if (answer.permission?.decision === "deny") break;
    }
    return answer;
  }

  async #askHook(
    hook: FoundHookAgent & { readonly revision: string; readonly name: string; readonly timeout_ms: number },
    request: HookRequest,
    storeRecord: StoreRecord,
    signal: AbortSignal | undefined,
  ): Promise<HookAnswer> {
    const { clock, recordsContents } = this.#deps;
    const dispatch_id = uuid();
    const started = { at: clock.now(), monotonic: clock.monotonic() };
    const body = new TextDecoder().decode(encodeBody(request, dispatch_id));
    const record = (result: DispatchRecord["result"], response: string | null) =>
      storeRecord({
        ...toRecordBase(request, dispatch_id, started.at, result),
        duration_ms: Math.round(clock.monotonic() - started.monotonic),
        request: recordsContents ? body.slice(0, MAX_STORED_CHARACTERS) : null,
        response: recordsContents ? (response?.slice(0, MAX_STORED_CHARACTERS) ?? null) : null,
      });
    try {
      const output = await this.#agent.run(hook, body, signal);
      const mask = await hook.loadMask();
      const answer = maskAnswer(request.event, parseAnswer(request.event, output), mask);
      const override = answer.permission?.decision === "allow" ? answer.permission.input_override : undefined;
      if (override && request.accepts?.(override) === false) throw new AnswerProblem("input_override is ambiguous");
      await record(toDecision(answer), mask.text(new TextDecoder().decode(output)));
      return answer.permission?.decision === "deny" ? addHookName(request.event, answer, hook.name) : answer;
    } catch (error) {
      if (signal?.aborted) {
        await record("cancelled", null);
        throw signal.reason;
      }
      if (!isProblem(error)) throw error;
      return this.#onFailure(request, toProblem(error), hook.name, () => record(toProblem(error).failure, null));
    }
  }

  /** Denies the event if it can be denied, and otherwise tells people. `name` is empty if the failure is not that of one hook. */
  async #onFailure(
    request: HookRequest,
    { failure, message }: HookProblem,
    name: string,
    storeRecord: StoreRecord,
  ): Promise<HookAnswer> {
    const { event, meta } = request;
    log("hooks").warn("hook {name} of workspace {workspace_id} failed at {event}: {failure}: {message}", {
      name,
      event,
      failure,
      message,
      workspace_id: meta.workspace_id,
    });
    await storeRecord({
      ...toRecordBase(request, uuid(), this.#deps.clock.now(), failure),
      duration_ms: 0,
      request: null,
      response: null,
    });
    const explanation =
      name === ""
        ? `The hooks of the workspace cannot be asked: ${message}`
        : `The hook "${name}" of the workspace failed: ${message}.`;
    if (event === "pre_tool_use") return { permission: { decision: "deny", reason: explanation }, denial: explanation };
    if (event === "user_prompt_submit") return { permission: { decision: "deny" }, user_message: explanation };
    return { user_message: explanation };
  }
}

/** Masks the texts that models and people read, but not a call's arguments, because the call runs with them. */
const maskAnswer = (event: HookEvent, answer: HookAnswer, mask: SecretMask): HookAnswer => {
  const { permission } = answer;
  const masked = mask.result(answer) as HookAnswer;
  if (event !== "pre_tool_use" || permission?.decision !== "allow" || !permission.input_override) return masked;
  const { input_override } = permission;
  return { ...masked, permission: Object.assign({}, masked.permission, { input_override }) };
};

/** Maximum length of a recorded request or response. */
const MAX_STORED_CHARACTERS = 65_536;

const toRecordBase = (
  { event, meta, data }: HookRequest,
  id: string,
  created_at: number,
  result: DispatchRecord["result"],
) => ({
  id,
  event,
  chat_id: meta.chat_id,
  owner_id: meta.owner_id,
  result,
  created_at,
  source: "workspace" as const,
  mode: "enforce" as const,
  tool_name: findToolName(data),
});

const findToolName = (data: HookRequest["data"]): string | null =>
  typeof data.tool_name === "string" ? data.tool_name : null;

/** Returns whether the matcher is `*` or the exact name of the event's tool. */
const matchesTool = (matcher: string, { data }: HookRequest): boolean =>
  matcher === "*" || matcher === findToolName(data);

/** Returns whether the event is a call that may need the workspace. Such a call is refused while the workspace's hooks cannot be asked. */
const needsWorkspace = ({ event, data }: HookRequest): boolean => {
  const name = findToolName(data);
  if (event !== "pre_tool_use" || name === null) return false;
  if (RECOVERY_TOOLS.has(name)) return false;
  return !isServerTool(name) || worksInWorkspace(name);
};

/** Tools that can repair a workspace that does not answer. */
const RECOVERY_TOOLS: ReadonlySet<string> = new Set(["start_workspace", "stop_workspace"]);

/** Adds the name of the hook that denied the event, for the model and for people. */
const addHookName = (event: HookEvent, answer: HookAnswer, name: string): HookAnswer => {
  const reason = answer.permission?.reason ?? "";
  const denial = `The hook "${name}" of the workspace does not allow this.${reason === "" ? "" : ` ${reason}`}`;
  return event === "user_prompt_submit" ? { user_message: denial, ...answer } : { ...answer, denial };
};
