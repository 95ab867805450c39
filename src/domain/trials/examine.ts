// Examines a way whose turn has ended: its changes since the prompt, and the result of the check command.
import { WorkspaceAgent } from "#actors/chat/turn/tool-agent.ts";
import type { CheckResult, WayChanges } from "#actors/trials/state.ts";
import { deriveUuid } from "#base/ids.ts";
import { pause } from "#base/retry.ts";
import type { StoredWay, TrialRow } from "#db/trials/trials.ts";
import type { CheckpointChanges } from "#schema/agents/checkpoint.ts";
import { CHECK_OUTPUT_BYTES, type TrialCheck, type TrialDiff } from "#schema/chats/trial.ts";
import { SecretMask } from "#src/tools/mask.ts";
import { endProcess, followProcess, startProcess, UNATTENDED_ENV } from "#src/tools/processes/processes.ts";
import { INTERRUPTED_REASON, type ToolAgent, ToolError, WorkspaceUnreachableError } from "#src/tools/tool.ts";
import { ChatToolServices } from "../chats/tool-services.ts";
import type { DomainContext } from "../context.ts";

/** Large repositories take time. */
const CHANGES_TIMEOUT_MS = 120_000;
/** The daemon enforces the check's own limit; this applies if it does not. */
const GRACE_MS = 30_000;
/** Maximum length of all diffs of a way. */
const MAX_DIFF = 4 * 1024 * 1024;
const TOO_LARGE = "(not shown: the changes of all folders together exceed 4 MiB)\n";

type MeasuredChanges = WayChanges & { readonly folders: TrialDiff["folders"] };

/** Compares the files with those at the prompt. Returns the reason if that is not possible. */
export const measureWay = async (
  ctx: DomainContext,
  trial: TrialRow,
  way: StoredWay,
  signal: AbortSignal,
): Promise<MeasuredChanges> => {
  const { agent, mask } = await loadAgentOfWay(ctx, trial, way);
  return retryUntilReached(ctx, signal, () => loadChanges(agent, way, { mask, signal })).catch((error) => {
    if (signal.aborted || !(error instanceof ToolError)) throw error;
    return { changes: null, changes_error: error.message, folders: [] };
  });
};

/** Runs the check command. Returns the reason if that is not possible. */
export const checkWay = async (
  ctx: DomainContext,
  trial: TrialRow,
  way: StoredWay,
  signal: AbortSignal,
): Promise<CheckResult> => {
  const { agent, mask } = await loadAgentOfWay(ctx, trial, way);
  try {
    const check = await retryUntilReached(ctx, signal, () => runCheck(ctx, agent, trial, way, { mask, signal }));
    return { check, error: "" };
  } catch (error) {
    if (signal.aborted || !(error instanceof ToolError)) throw error;
    return { check: null, error: `The check could not run. ${error.message}` };
  }
};

const loadAgentOfWay = async (ctx: DomainContext, trial: TrialRow, { chat_id, workspace_id }: StoredWay) => {
  const { store, clock, agentHttp, callMemory: memory } = ctx;
  const { owner_id, organization_id } = trial;
  const scope = { chat_id, owner_id, organization_id, workspace_id, run_id: chat_id };
  const toolServices = () => new ChatToolServices(ctx, scope);
  const agent = new WorkspaceAgent({ memory, store, clock, agentHttp, toolServices }, scope, true);
  return { agent, mask: new SecretMask(await toolServices().loadSecrets()) };
};

/** A daemon that lost its connection returns within this time, or not at all. */
const REACH_TIMEOUT_MS = 120_000;
const RETRY_INTERVAL_MS = 1_000;

/** Retries while the workspace is unreachable although it should be running, such as after a restart of the server. */
const retryUntilReached = async <T>(
  { clock }: DomainContext,
  signal: AbortSignal,
  operation: () => Promise<T>,
): Promise<T> => {
  const deadline = clock.monotonic() + REACH_TIMEOUT_MS;
  for (;;) {
    try {
      return await operation();
    } catch (error) {
      if (!(error instanceof WorkspaceUnreachableError) || clock.monotonic() > deadline) throw error;
    }
    await pause(clock, RETRY_INTERVAL_MS, signal);
    signal.throwIfAborted();
  }
};

type ExamineOptions = { readonly mask: SecretMask; readonly signal: AbortSignal };

const loadChanges = async (
  agent: ToolAgent,
  { chat_id, message_id }: StoredWay,
  { mask, signal }: ExamineOptions,
): Promise<MeasuredChanges> => {
  const json = { chat_id, message_id };
  const path = "/checkpoints/changes";
  const requested = { method: "POST", path, json, patient: true, answer_ms: CHANGES_TIMEOUT_MS, signal } as const;
  const { folders, problems } = await agent.call<CheckpointChanges>(requested);
  const sum = (name: "files" | "added" | "removed"): number => folders.reduce((total, one) => total + one[name], 0);
  let remaining = MAX_DIFF;
  const shown = folders.map(({ root, unified_diff }) => {
    remaining -= unified_diff.length;
    return { root, unified_diff: remaining < 0 ? TOO_LARGE : mask.text(unified_diff) };
  });
  const changes = { files: sum("files"), added: sum("added"), removed: sum("removed") };
  return { changes, changes_error: problems.join("; "), folders: shown };
};

/** Runs the check once for each turn; after a crash, it is found again by its ID. */
const runCheck = async (
  { clock }: DomainContext,
  agent: ToolAgent,
  trial: TrialRow,
  { number, turn }: StoredWay,
  { mask, signal }: ExamineOptions,
): Promise<TrialCheck> => {
  const id = deriveUuid(`check ${trial.id} ${number} ${turn}`);
  const timeout_ms = trial.check_timeout_seconds * 1_000;
  try {
    await startProcess(agent, { id, command: trial.check_command, env: UNATTENDED_ENV, timeout_ms });
    const runDeps = { agent, clock, mask, write: () => {} };
    const { process, output } = await followProcess(runDeps, id, timeout_ms + GRACE_MS, signal);
    const { exit_code, timed_out, running, started_at, ended_at } = process;
    if (running) await endProcess({ agent, clock }, id);
    const duration_ms = ended_at === null ? timeout_ms : Math.max(0, Date.parse(ended_at) - Date.parse(started_at));
    return {
      exit_code: running ? null : exit_code,
      timed_out: timed_out || running,
      output: truncateStart(output),
      duration_ms,
    };
  } catch (error) {
    if (signal.reason === INTERRUPTED_REASON) await endProcess({ agent, clock }, id);
    throw error;
  }
};

/** Returns the last bytes, starting at a character boundary. */
const truncateStart = (text: string): string => {
  const bytes = Buffer.from(text);
  if (bytes.byteLength <= CHECK_OUTPUT_BYTES) return text;
  return bytes
    .subarray(bytes.byteLength - CHECK_OUTPUT_BYTES)
    .toString("utf8")
    .replace(/^\uFFFD+/, "");
};
