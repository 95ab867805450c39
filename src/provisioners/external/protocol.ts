// What a server and a worker of its own say to each other: JSON, one message a WebSocket frame. Everything that comes in is checked
// here; whoever says something else is cut off (rule PV-12).
import { type Static, type TSchema, Type as t } from "@sinclair/typebox";
import { TypeCompiler } from "@sinclair/typebox/compiler";
import type { ProvisionRequest } from "../provisioner.ts";

/** Milliseconds between two signs of life, and after how many without one the other side is given up. */
export const ALIVE_MS = 5_000;
export const SILENCE_MS = 15_000;
/** Bytes of output of one job; the server keeps no more than that either. */
export const OUTPUT_LIMIT = 1_048_576;
/** Timings of one job. */
export const TIMING_LIMIT = 1_000;
/** Lines of one message. */
export const LINES = 200;
/** Bytes of a job on its way to a worker; a socket of the server holds no more than twice that. */
export const JOB_LIMIT = 2 * 1024 * 1024;
/** Characters of what a build may leave behind. */
const STATE_LIMIT = 1_048_576;

const id = t.String({ maxLength: 64 });
const short = t.String({ maxLength: 4_096 });
const time = t.Number();

const Line = t.Object({
  level: t.Union([t.Literal("trace"), t.Literal("debug"), t.Literal("info"), t.Literal("warn"), t.Literal("error")]),
  stage: short,
  output: t.String({ maxLength: OUTPUT_LIMIT + 1 }),
});
export type Line = Static<typeof Line>;

export const WorkerMessage = t.Union([
  t.Object({ type: t.Literal("alive") }),
  /** Takes nothing new; what it works on it gives back by closing. */
  t.Object({ type: t.Literal("leaving") }),
  t.Object({ type: t.Literal("log"), job_id: id, lines: t.Array(Line, { maxItems: LINES }) }),
  t.Object({
    type: t.Literal("timing"),
    job_id: id,
    timing: t.Object({ action: short, resource: short, source: short, stage: short, started_at: time, ended_at: time }),
  }),
  t.Object({
    type: t.Literal("done"),
    job_id: id,
    state: t.Union([t.String({ maxLength: STATE_LIMIT }), t.Null()]),
  }),
  t.Object({ type: t.Literal("failed"), job_id: id, error: t.String({ maxLength: 65_536 }), code: short }),
  t.Object({ type: t.Literal("canceled"), job_id: id }),
]);
export type WorkerMessage = Static<typeof WorkerMessage>;

/** A job holds secrets: never logged, and sent only to a worker that has signed in. */
export type ServerMessage =
  | { readonly type: "welcome"; readonly id: string; readonly name: string }
  | { readonly type: "alive" }
  | { readonly type: "job"; readonly provisioner: string; readonly request: ProvisionRequest }
  /** Only look whether it could be done: a word of its own, so that no worker takes it for a job. Answered as a job is. */
  | { readonly type: "plan"; readonly provisioner: string; readonly request: ProvisionRequest }
  | { readonly type: "cancel"; readonly job_id: string };

const workerMessage = TypeCompiler.Compile(WorkerMessage);

// The server is trusted with the job itself; what is checked is that it speaks this protocol.
const request = t.Object({
  job_id: id,
  transition: t.String(),
  manifest: t.Object({ resources: t.Array(t.Unknown()) }),
});
const serverMessage = TypeCompiler.Compile(
  t.Union([
    t.Object({ type: t.Literal("welcome"), id, name: short }),
    t.Object({ type: t.Literal("alive") }),
    t.Object({ type: t.Literal("job"), provisioner: short, request }),
    t.Object({ type: t.Literal("plan"), provisioner: short, request }),
    t.Object({ type: t.Literal("cancel"), job_id: id }),
  ]) as TSchema,
);

/** The message, or undefined when it is none that a worker says. */
export const readWorkerMessage = (data: string | Uint8Array): WorkerMessage | undefined => {
  const value = parse(data);
  return workerMessage.Check(value) ? value : undefined;
};

/** The message, or undefined when it is none that a server says. */
export const readServerMessage = (data: string | Uint8Array): ServerMessage | undefined => {
  const value = parse(data);
  return serverMessage.Check(value) ? (value as ServerMessage) : undefined;
};

const parse = (data: string | Uint8Array): unknown => {
  if (typeof data !== "string") return undefined;
  try {
    return JSON.parse(data);
  } catch {
    return undefined;
  }
};
