// The tool `execute`: runs a shell command in the workspace and streams its output. A command that exceeds its timeout continues and can be
// inspected later. If its turn is interrupted, it is killed with all its child processes (facts/chats 5.1).
import { Type as t } from "@sinclair/typebox";
import type { ProcessInfo, ProcessLimits, StartProcess } from "#schema/agents/agent-files.ts";
import { createUnitNote, parseDuration } from "../duration.ts";
import { getCommandInFolder } from "../permission-mode.ts";
import type { ToolResult } from "../result.ts";
import { defineTool, INTERRUPTED_REASON, type ToolContext, ToolError } from "../tool.ts";
import description from "./execute.txt" with { type: "text" };
import { findHandoverReason } from "./handover-programs.ts";
import { endProcess, followProcess, startProcess, UNATTENDED_ENV } from "./processes.ts";
import { findWriteReason } from "./read-only-commands.ts";

const DEFAULT_TIMEOUT_MS = 10_000;
const MAX_TIMEOUT_MS = 4 * 3_600_000;

export const execute = defineTool({
  name: "execute",
  description,
  input_schema: t.Object(
    {
      command: t.String({ minLength: 1, maxLength: 100_000, description: "Run by `sh -c`." }),
      model_intent: t.Optional(
        t.String({ description: "The purpose of the command in a few words, shown to the user." }),
      ),
      timeout: t.Optional(t.String({ description: 'How long to wait, such as "90s" or "10m"; "10s" by default.' })),
      workdir: t.Optional(
        t.String({ minLength: 1, description: "The working directory; default: the agent's folder." }),
      ),
      run_in_background: t.Optional(t.Boolean({ description: "Return the ID of the process without waiting." })),
    },
    { additionalProperties: false },
  ),
  async run(context, args, signal) {
    const { agent, run_id } = context;
    const timeout_ms = parseDuration(args.timeout, DEFAULT_TIMEOUT_MS, MAX_TIMEOUT_MS);
    const { command, background } = parseForeground(args.command, args.run_in_background);
    const startedAt = context.clock.monotonic();
    try {
      const directory = args.workdir === undefined ? {} : { directory: args.workdir };
      const limits = await loadProcessLimits(context, { command, workdir: args.workdir });
      await startProcess(agent, { id: run_id, command, env: UNATTENDED_ENV, ...directory, ...limits });
      signal.throwIfAborted();
      const requested = background ? 0 : timeout_ms;
      const { process, output, truncated } = await followProcess(context, run_id, requested, signal);
      const toolOutput = { output, ...(truncated ? { truncated } : {}), ...createUnitNote("timeout", args.timeout) };
      const wall_duration_ms = getDuration(process) ?? Math.round(context.clock.monotonic() - startedAt);
      return {
        ...toolOutput,
        wall_duration_ms,
        ...describeOutcome(process, { background, timeout_ms }),
        ...createRepeatNote(context.again),
      };
    } catch (error) {
      if (signal.reason === INTERRUPTED_REASON) await endProcess(context, run_id);
      throw error;
    }
  },
});

/**
 * Returns how a read-only command is kept from writing: by the workspace's system, otherwise by checking the command itself. Throws
 * ToolError.
 */
const loadProcessLimits = async (
  {
    agent,
    agent_name,
    loadFolder,
    writable_only,
  }: Pick<ToolContext, "agent" | "agent_name" | "loadFolder" | "writable_only">,
  args: { readonly command: string; readonly workdir: string | undefined },
): Promise<Pick<StartProcess, "writable_only">> => {
  if (writable_only === undefined) return {};
  const handoverReason = findHandoverReason(args.command);
  if (handoverReason !== undefined)
    throw new ToolError(`Here commands may only look, and ${handoverReason}. Nothing was run.`);
  const limits = await agent.call<ProcessLimits>({ method: "GET", path: "/processes/limits", patient: true });
  if (limits.can_hold_back) return { writable_only: [...writable_only] };
  const folder = await loadFolder?.();
  const writeReason = findWriteReason(getCommandInFolder({ ...args, agent: agent_name }, folder), folder);
  if (writeReason === undefined) return {};
  throw new ToolError(
    `Here commands may only look, and this workspace cannot hold them back: ${writeReason}. Nothing was run.`,
  );
};

type WaitOptions = { readonly background: boolean; readonly timeout_ms: number };

const describeOutcome = (
  { id, running, exit_code }: ProcessInfo,
  { background, timeout_ms }: WaitOptions,
): ToolResult => {
  if (!running) return { success: exit_code === 0, exit_code };
  if (background) return { success: true, background_process_id: id, note: BACKGROUND_NOTE };
  const error = `The command had not ended after ${timeout_ms / 1_000} s. It still runs.`;
  return { success: false, error, background_process_id: id, note: BACKGROUND_NOTE };
};

const BACKGROUND_NOTE = "It runs in the background: look with process_output, end it with process_signal.";

/** A trailing `&` means background; `&&` does not. */
const parseForeground = (command: string, requested = false): { command: string; background: boolean } => {
  const trimmed = command.trimEnd();
  const hasTrailingAmpersand = /[^&\\>|]&$/.test(trimmed);
  return hasTrailingAmpersand
    ? { command: trimmed.slice(0, -1).trimEnd(), background: true }
    : { command, background: requested };
};

const getDuration = ({ started_at, ended_at }: ProcessInfo): number | undefined =>
  ended_at === null ? undefined : Math.max(0, Date.parse(ended_at) - Date.parse(started_at));

const createRepeatNote = (again: boolean): ToolResult =>
  again ? { note: "The server restarted in between; the command did not run twice." } : {};
