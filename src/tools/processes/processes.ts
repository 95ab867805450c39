// Runs programs in the workspace for the tools: starts each once even if the request is repeated, follows it until it ends or times out,
// and kills it when the turn is interrupted. Used by `execute` and the `process_` tools.
import { pause } from "#base/retry.ts";
import type { ProcessInfo, ProcessOutput, SIGNALS, StartProcess } from "#schema/agents/agent-files.ts";
import { HeadTailBuffer } from "../cut.ts";
import { skipCutLine } from "../mask.ts";
import { type ToolAgent, type ToolContext, ToolError, WorkspaceUnreachableError } from "../tool.ts";

/** Maximum size of output in a result (facts/chats 5.1). */
export const MAX_OUTPUT_BYTES = 32_768;
/** How long one request waits for new output. */
const LONG_POLL_MS = 25_000;
/** Output is read in batches at this interval. */
const POLL_INTERVAL_MS = 40;
/** Grace period between asking a program to end and killing it. */
const GRACE_MS = 400;
/** If a daemon does not return within this time, its programs no longer exist either. */
const UNREACHABLE_TIMEOUT_MS = 600_000;
const RETRY_DELAY_MS = 500;
const MAX_CHUNK_BYTES = 131_072;
/** An offset beyond any output. */
const PAST_END = 999_999_999_999_999;

/** Variables for programs without a user at a terminal: no pagers, colors, editors or prompts. */
export const UNATTENDED_ENV = {
  TERM: "dumb",
  NO_COLOR: "1",
  PAGER: "cat",
  GIT_PAGER: "cat",
  MANPAGER: "cat",
  EDITOR: "true",
  VISUAL: "true",
  GIT_EDITOR: "true",
  GIT_SEQUENCE_EDITOR: "true",
  GIT_TERMINAL_PROMPT: "0",
  DEBIAN_FRONTEND: "noninteractive",
};

export const startProcess = (agent: ToolAgent, json: StartProcess): Promise<ProcessInfo> =>
  agent.call({ method: "POST", path: "/processes/start", json, patient: true });

/** `wait_ms`: how long to wait for output after `after`, or for the end. */
const readOutput = (
  agent: ToolAgent,
  id: string,
  query: { after: number; wait_ms: number },
  { signal, ends = false }: { readonly signal?: AbortSignal; readonly ends?: boolean } = {},
): Promise<ProcessOutput> =>
  agent.call({
    method: "GET",
    path: `/processes/${encodeURIComponent(id)}/output?follow=1&limit=${MAX_CHUNK_BYTES}&after=${query.after}&wait_ms=${query.wait_ms}`,
    patient: true,
    ends,
    ...(signal ? { signal } : {}),
  });

export const sendSignal = (
  agent: ToolAgent,
  id: string,
  signal: (typeof SIGNALS)[number],
  ends = false,
): Promise<unknown> =>
  agent.call({ method: "POST", path: `/processes/${encodeURIComponent(id)}/signal`, json: { signal }, ends });

export type FollowResult = { readonly process: ProcessInfo; readonly output: string; readonly truncated: boolean };

/** Streams the program's output from the beginning, until it has ended or `for_ms` have passed. */
export const followProcess = async (
  { agent, clock, mask, write }: Pick<ToolContext, "agent" | "clock" | "mask" | "write">,
  id: string,
  for_ms: number,
  signal: AbortSignal,
): Promise<FollowResult> => {
  const deadlineMs = clock.monotonic() + for_ms;
  const buffer = new HeadTailBuffer(MAX_OUTPUT_BYTES);
  // Output is masked before it is shortened or passed on, because a part of a secret would not be recognized.
  const masked = mask.stream();
  const addOutput = (text: string): void => {
    if (text === "") return;
    buffer.add(text);
    write(text);
  };
  const getOutput = (isOver: boolean) => {
    addOutput(isOver ? masked.end() : masked.leave());
    const { text, truncated } = buffer.result;
    return { output: text, truncated };
  };
  for (let after = 0; ; ) {
    const remaining_ms = Math.max(0, Math.ceil(deadlineMs - clock.monotonic()));
    const read = await readOutput(
      agent,
      id,
      { after, wait_ms: Math.min(remaining_ms, LONG_POLL_MS) },
      { signal },
    ).catch((error) => {
      // The output so far is still useful.
      if (error instanceof ToolError && after > 0) throw new ToolError(error.message, getOutput(false));
      throw error;
    });
    signal.throwIfAborted();
    if (read.truncated) {
      addOutput(masked.leave());
      buffer.addLost(read.from - after);
    }
    addOutput(masked.push(read.truncated ? skipCutLine(read.output) : read.output));
    const hasNewOutput = read.next > after;
    after = read.next;
    const { output: _, from, next, truncated, ...process } = read;
    if (!process.running && !read.more) return { process, ...getOutput(true) };
    if (process.running && remaining_ms === 0) return { process, ...getOutput(false) };
    if (process.running && hasNewOutput && !read.more) await pause(clock, Math.min(POLL_INTERVAL_MS, remaining_ms));
  }
};

/**
 * Ends the program with all its child processes: asks it to end, and kills it if it does not. Retries until the outcome is known. Never
 * throws.
 */
export const endProcess = async ({ agent, clock }: Pick<ToolContext, "agent" | "clock">, id: string): Promise<void> => {
  const deadlineMs = clock.monotonic() + UNREACHABLE_TIMEOUT_MS;
  for (;;) {
    try {
      await sendSignal(agent, id, "terminate", true);
      // The offset is beyond the end, so that this waits only for the program's end.
      const { running } = await readOutput(agent, id, { after: PAST_END, wait_ms: GRACE_MS }, { ends: true });
      if (running) await sendSignal(agent, id, "kill", true);
      return;
    } catch (error) {
      // The program or its workspace has ended.
      if (!(error instanceof WorkspaceUnreachableError) || clock.monotonic() > deadlineMs) return;
    }
    await pause(clock, RETRY_DELAY_MS);
  }
};
