// Previews what calls that wait for approval would do in the workspace, and finds calls that can only fail. No person is asked about
// those (rules PE-15, PE-16). Runs outside of every mailbox.
import { mapConcurrently } from "#base/concurrency-limit.ts";
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
import { findAgentOfCall, loadAgentFolder } from "./agent-choice.ts";
import { selectCalls } from "./ending.ts";
import type { McpOffer } from "./mcp.ts";
import { toToolScope } from "./offer.ts";
import { type ReachDeps, WorkspaceAgent } from "./tool-agent.ts";

/** Maximum delay of a question to a person by a workspace that does not answer. */
const PREVIEW_TIMEOUT_MS = 5_000;
/** Maximum concurrent previews. Each may hold a whole file in memory. */
const MAX_CONCURRENT = 8;
/** Maximum bytes of the diffs of all calls together. */
const MAX_DIFFS_BYTES = 4 * 1024 * 1024;

export type PreviewScope = PromptChat & { readonly chat_id: string };

/** Returns what each call would do now, in order. Calls of an answer with hundreds of edits share the time and the bytes of diffs. */
export const previewCalls = (
  deps: ReachDeps,
  scope: PreviewScope,
  calls: readonly PendingCall[],
): Promise<CallPreview[]> => {
  let remainingBytes = MAX_DIFFS_BYTES;
  return withTimeout(deps, (signal) =>
    mapConcurrently(MAX_CONCURRENT, calls, async (call) => {
      if (remainingBytes <= 0) return { problem: "Not previewed: the answer changes too much to show all of it." };
      const { agent, args } = findAgentOfCall(call);
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
 * edits that do not fit the file or lead to another one. If the workspace does not answer, its calls are not included.
 */
export const failingCalls = async (
  deps: ReachDeps,
  { chat_id, attempt, mcp, content }: ProposedCalls,
  signal: AbortSignal,
): Promise<(readonly [call: MessagePart, why: string])[]> => {
  const { permissions, about } = attempt;
  if (permissions === null) return [];
  const scope = toToolScope(chat_id, about);
  const found = await withTimeout(deps, (timeout) =>
    mapConcurrently(MAX_CONCURRENT, selectCalls(content), async (part) => {
      const { tool_name = "" } = part;
      const { agent, args } = findAgentOfCall({ tool_name, args: part.args });
      const context = { use: findToolUse(tool_name, scope), folder: undefined };
      const tool = listTools(scope).find(({ name }) => name === tool_name) ?? mcp.get(tool_name)?.tool;
      if (!tool || decidePermission(permissions, { tool_name, args }, context) !== "ask") return undefined;
      const edit = findArgumentsProblem(tool, args) === undefined ? toPreviewFiles({ tool_name, args }) : undefined;
      if (edit === undefined) return findArgumentsProblem(tool, args);
      const workspace = new WorkspaceAgent(deps, { ...about, chat_id, run_id: chat_id }, false, { name: agent });
      const eitherSignal = AbortSignal.any([timeout, signal]);
      const findProblem = async (): Promise<string | undefined> => {
        await previewEdit(workspace, edit, eitherSignal);
        // In that mode, it is known only when an edit runs whether an absolute path needs approval.
        return permissions.default === "accept_edits" ? undefined : findRedirectProblem(workspace, args, eitherSignal);
      };
      return findProblem().catch((error: unknown) =>
        error instanceof ToolError && !isUnknown(error) ? error.message : undefined,
      );
    }),
  );
  return selectCalls(content).flatMap((part, index) => {
    const why = found[index];
    return why === undefined ? [] : [[part, why] as const];
  });
};

/** Aborts the work at the timeout. */
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

/** Returns whether the workspace cannot answer, because it is unreachable or would only be started by the call. */
const isUnknown = (error: ToolError): boolean =>
  error instanceof WorkspaceUnreachableError || error instanceof WorkspaceStoppedError;
