// Programs in the workspace as the tools see them: started once however often it is asked for, followed until they end or time is up,
// ended when the turn is interrupted. Used by `execute` and the `process_` tools.
import { pause } from "#base/retry.ts";
import type { ProcessInfo, ProcessOutput, SIGNALS, StartProcess } from "#schema/agents/agent-files.ts";
import { Gathered } from "../cut.ts";
import { type ToolAgent, type ToolContext, ToolError, WorkspaceAway } from "../tool.ts";

/** Bytes of output in a result (facts/chats 5.1). */
export const OUTPUT_LIMIT = 32_768;
/** How long one request waits for news. */
const WAIT_MS = 25_000;
/** Chatty programs are read this often, not line by line. */
const PACE_MS = 40;
/** So long a program may clean up after it was asked to end. */
const GRACE_MS = 400;
/** A daemon that is away returns within that, or its programs no longer exist with it. */
const PERSIST_MS = 600_000;
const AGAIN_MS = 500;
const CHUNK = 131_072;
/** An offset that no output reaches. */
const BEYOND = 999_999_999_999_999;

/** Variables of programs without a person at their terminal: nothing may page, color, edit or ask. */
export const UNATTENDED = {
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

/** `wait_ms`: waits so long for output behind `after`, or for the end. */
const readOutput = (
  agent: ToolAgent,
  id: string,
  query: { after: number; wait_ms: number },
  { signal, ends = false }: { readonly signal?: AbortSignal; readonly ends?: boolean } = {},
): Promise<ProcessOutput> =>
  agent.call({
    method: "GET",
    path: `/processes/${encodeURIComponent(id)}/output?follow=1&limit=${CHUNK}&after=${query.after}&wait_ms=${query.wait_ms}`,
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

export type Followed = { readonly process: ProcessInfo; readonly output: string; readonly truncated: boolean };

/** Reads the program's output from the beginning, telling it on as it comes, until it has ended or `for_ms` are over. */
export const followProcess = async (
  { agent, clock, mask, write }: Pick<ToolContext, "agent" | "clock" | "mask" | "write">,
  id: string,
  for_ms: number,
  signal: AbortSignal,
): Promise<Followed> => {
  const until = clock.monotonic() + for_ms;
  const gathered = new Gathered(OUTPUT_LIMIT);
  // Before anything is cut or passed on: half a secret would not be recognized.
  const masked = mask.stream();
  const say = (text: string): void => {
    if (text === "") return;
    gathered.add(text);
    write(text);
  };
  const shown = () => {
    say(masked.end());
    const { text, truncated } = gathered.result;
    return { output: text, truncated };
  };
  for (let after = 0; ; ) {
    const left = Math.max(0, Math.ceil(until - clock.monotonic()));
    const read = await readOutput(agent, id, { after, wait_ms: Math.min(left, WAIT_MS) }, { signal }).catch((error) => {
      // What it has printed until then is worth knowing.
      if (error instanceof ToolError && after > 0) throw new ToolError(error.message, shown());
      throw error;
    });
    signal.throwIfAborted();
    if (read.truncated) {
      say(masked.end());
      gathered.miss(read.from - after);
    }
    say(masked.push(read.output));
    const isMore = read.next > after;
    after = read.next;
    const { output: _, from, next, truncated, ...process } = read;
    if (!process.running && !read.more) return { process, ...shown() };
    if (process.running && left === 0) return { process, ...shown() };
    if (process.running && isMore && !read.more) await pause(clock, Math.min(PACE_MS, left));
  }
};

/** Ends the program with all it has started: asks, and after a moment forces. Retries until the outcome is known. Never throws. */
export const endProcess = async ({ agent, clock }: Pick<ToolContext, "agent" | "clock">, id: string): Promise<void> => {
  const until = clock.monotonic() + PERSIST_MS;
  for (;;) {
    try {
      await sendSignal(agent, id, "terminate", true);
      // Bytes from beyond the end: only the program's end is waited for.
      const { running } = await readOutput(agent, id, { after: BEYOND, wait_ms: GRACE_MS }, { ends: true });
      if (running) await sendSignal(agent, id, "kill", true);
      return;
    } catch (error) {
      // It has ended, or its workspace has.
      if (!(error instanceof WorkspaceAway) || clock.monotonic() > until) return;
    }
    await pause(clock, AGAIN_MS);
  }
};
