// Runs an MCP server program of the workspace in its own process group. When the program ends, the reason contains the last lines of its
// error output, with configured values redacted. Used by mcp.ts.
import type { Clock } from "#base/clock.ts";
import { finishesWithin } from "#base/retry.ts";
import type { LineTransport, Program } from "#src/mcp/lines.ts";
import type { ProcessGroups } from "../scripts/groups.ts";
import type { McpServerSpec } from "./mcp-config.ts";

const MAX_TAIL_CHARS = 2_000;
const MAX_LINES = 5;
/** Shorter values are not secrets, and redacting them would hide ordinary words. */
const MIN_SECRET_CHARS = 6;

type Options = {
  readonly clock: Clock;
  readonly groups: ProcessGroups;
  readonly env: Readonly<Record<string, string>>;
};
type Spec = Extract<McpServerSpec, { kind: "stdio" }>;

/** Starts the program and connects its output to the transport. When the program ends, the transport ends with a reason. */
export const startProgram = ({ clock, env, groups }: Options, spec: Spec, transport: LineTransport): Program => {
  const child = Bun.spawn([spec.command, ...spec.args], {
    cwd: spec.folder,
    env: { ...env, ...spec.env },
    stdin: "pipe",
    stdout: "pipe",
    stderr: "pipe",
    detached: true,
  });
  groups.add(child.pid);
  void (async () => {
    for await (const bytes of child.stdout) transport.push(bytes);
  })().catch(() => {});
  let tail = "";
  const readErrors = (async () => {
    const decoder = new TextDecoder();
    for await (const bytes of child.stderr)
      tail = (tail + decoder.decode(bytes, { stream: true })).slice(-MAX_TAIL_CHARS);
  })().catch(() => {});
  void child.exited.then(async (code) => {
    groups.onLeaderEnd(child.pid);
    // Its child processes may keep the pipe open.
    await finishesWithin(clock, PIPE_TIMEOUT_MS, readErrors);
    transport.onProgramEnd(formatReason(code, maskValues(tail, Object.values(spec.env))));
  });
  return {
    write: async (bytes: Uint8Array) => {
      child.stdin.write(bytes);
      await child.stdin.flush();
    },
    end: () => groups.end(child.pid),
  };
};

const PIPE_TIMEOUT_MS = 200;

const formatReason = (code: number, tail: string): string => {
  const lines = tail.split("\n").flatMap((line) => (line.trim() === "" ? [] : [line.trim()]));
  const lastOutput = lines.slice(-MAX_LINES).join(" / ");
  return lastOutput === ""
    ? `the program ended with code ${code}`
    : `the program ended with code ${code}: ${lastOutput}`;
};

const maskValues = (text: string, values: readonly string[]): string =>
  values.reduce((shown, value) => (value.length < MIN_SECRET_CHARS ? shown : shown.replaceAll(value, "***")), text);
