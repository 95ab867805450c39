// Previews what calls that wait for approval would do in the workspace, and finds calls that can only fail, so that no person is asked about
// them (rules PE-15, PE-16). Runs outside of every mailbox.
import { mapConcurrently } from "#base/concurrency-limit.ts";
import { Slices } from "#base/retry.ts";
import type { MessagePart } from "#schema/chats/chat-part.ts";
import { findRedirectProblem } from "#src/tools/files/real-path.ts";
import { decidePermission } from "#src/tools/permission.ts";
import { type CallPreview, previewCall, previewEdit, toPreviewFiles } from "#src/tools/preview.ts";
import { findToolUse, listTools } from "#src/tools/registry.ts";
import { findArgumentsProblem } from "#src/tools/run.ts";
import { ToolError, WorkspaceStoppedError, WorkspaceUnreachableError } from "#src/tools/tool.ts";
import type { PendingCall } from "../machine/decision.ts";
import type { StartedAttempt } from "../messages.ts";
import type { PromptChat } from "../prompt/prompt.ts";
import { loadAgentFolder, splitAgentArgument } from "./agent-choice.ts";
import { selectCalls } from "./ending.ts";
import type { McpOffer } from "./mcp.ts";
import { toToolScope } from "./offer.ts";
import { type ReachDeps, WorkspaceAgent } from "./tool-agent.ts";

/** A question to a person waits this long for a workspace that does not answer. */
const PREVIEW_TIMEOUT_MS = 5_000;
/** Maximum concurrent previews. Each may hold a whole file in memory. */
const MAX_CONCURRENT = 8;
/** Maximum size of the diffs of all calls together. */
const MAX_DIFF_BYTES = 4 * 1024 * 1024;

export type PreviewScope = PromptChat & { readonly chat_id: string };

/** Returns what each call would do now, in order. All calls together share one timeout and one limit for the size of diffs. */
export const previewCalls = (
  deps: ReachDeps,
  scope: PreviewScope,
  calls: readonly PendingCall[],
): Promise<CallPreview[]> => {
  let remainingBytes = MAX_DIFF_BYTES;
  const slices = new Slices(deps.clock);
  return withTimeout(deps, (signal) =>
    mapConcurrently(MAX_CONCURRENT, calls, async (call) => {
      await slices.next();
      if (remainingBytes <= 0) return { problem: "Not previewed: the answer changes too much to show all of it." };
      const { agent, args } = splitAgentArgument(call);
      const workspace = new WorkspaceAgent(deps, { ...scope, run_id: scope.chat_id }, false, { name: agent });
      const folder = await loadAgentFolder(deps.store, scope.workspace_id, agent);
      const preview = await previewCall(workspace, { ...call, args }, folder ?? "", signal);
      for (const { diff } of preview.files ?? []) remainingBytes -= Buffer.byteLength(diff);
      return preview;
    }),
  );
};

type ProposedCalls = {
  readonly chat_id: string;
  readonly attempt: StartedAttempt;
  readonly mcp: Pick<McpOffer, "get">;
  readonly content: readonly MessagePart[];
};

/**
 * Returns the calls that would need a person's approval but can only fail, each with its error: arguments that do not fit the tool, or
 * edits that do not fit the file or lead to another file. Omits calls about which the workspace gives no answer.
 */
export const findFailingCalls = async (
  deps: ReachDeps,
  { chat_id, attempt, mcp, content }: ProposedCalls,
  signal: AbortSignal,
): Promise<(readonly [call: MessagePart, why: string])[]> => {
  const { permissions, chat } = attempt;
  if (permissions === null) return [];
  const scope = toToolScope(chat_id, chat);
  const calls = selectCalls(content);
  const slices = new Slices(deps.clock);
  const problems = await withTimeout(deps, (timeout) =>
    mapConcurrently(MAX_CONCURRENT, calls, async ({ tool_name = "", args: allArgs }) => {
      await slices.next();
      const { agent, args } = splitAgentArgument({ tool_name, args: allArgs });
      const context = { use: findToolUse(tool_name, scope), folder: undefined };
      const tool = listTools(scope).find(({ name }) => name === tool_name) ?? mcp.get(tool_name)?.tool;
      if (!tool || decidePermission(permissions, { tool_name, args }, context) !== "ask") return undefined;
      const argumentsProblem = findArgumentsProblem(tool, args);
      const edit = toPreviewFiles({ tool_name, args });
      if (argumentsProblem !== undefined || edit === undefined) return argumentsProblem;
      const workspace = new WorkspaceAgent(deps, { ...chat, chat_id, run_id: chat_id }, false, { name: agent });
      const acceptsEdits = permissions.default === "accept_edits";
      return findEditProblem(workspace, { edit, args, acceptsEdits }, AbortSignal.any([timeout, signal]));
    }),
  );
  return calls.flatMap((call, index) => {
    const why = problems[index];
    return why === undefined ? [] : [[call, why] as const];
  });
};

type ProposedEdit = {
  readonly edit: NonNullable<ReturnType<typeof toPreviewFiles>>;
  readonly args: unknown;
  /** Whether the chat's mode allows edits in the agent's folder without approval. */
  readonly acceptsEdits: boolean;
};

/** Returns why an edit can only fail; undefined also if the workspace gives no answer. */
const findEditProblem = async (
  workspace: WorkspaceAgent,
  { edit, args, acceptsEdits }: ProposedEdit,
  signal: AbortSignal,
): Promise<string | undefined> => {
  try {
    await previewEdit(workspace, edit, signal);
    // In the mode that accepts edits, a path outside of the folder is checked only when the edit runs.
    return acceptsEdits ? undefined : await findRedirectProblem(workspace, args, signal);
  } catch (error) {
    return error instanceof ToolError && !isUnanswered(error) ? error.message : undefined;
  }
};

/** Runs the work with a signal that aborts at the timeout. */
const withTimeout = async <T>(
  { clock }: Pick<ReachDeps, "clock">,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> => {
  const timeout = new AbortController();
  const timer = clock.after(PREVIEW_TIMEOUT_MS, () =>
    timeout.abort(new WorkspaceUnreachableError("The workspace does not answer.")),
  );
  try {
    return await work(timeout.signal);
  } finally {
    timer.cancel();
  }
};

/** Returns whether the workspace gave no answer, because it is unreachable or stopped. The call itself may start a stopped workspace. */
const isUnanswered = (error: ToolError): boolean =>
  error instanceof WorkspaceUnreachableError || error instanceof WorkspaceStoppedError;
