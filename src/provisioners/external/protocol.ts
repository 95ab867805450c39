// What a server and a worker of its own say to each other: JSON, one message a WebSocket frame. Everything that comes in is checked
// here; anyone who says something else is cut off (rule PV-12).
import { type Static, type TSchema, Type as t } from "@sinclair/typebox";
import { TypeCompiler } from "@sinclair/typebox/compiler";
import { ManifestResource } from "#schema/templates/manifest.ts";
import type { KeptBuild, ProvisionRequest } from "../provisioner.ts";
import type { ImportRequest } from "../terraform/import.ts";
import { opened } from "./opened.ts";
import { JOB_FILES, type JobFile, PIECE_BYTES } from "./pieces.ts";

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

/** The pieces that came before are what the build has left. */
const has_left = t.Optional(t.Boolean());

/** What Terraform has made: more of it than fits into one message is none. */
const Made_ = t.Object({
  resources: t.Array(opened(ManifestResource), { maxItems: 4_096 }),
  daily_cost: t.Integer({ minimum: 0 }),
  secrets: t.Array(t.String({ maxLength: 65_536 }), { maxItems: 1_000 }),
});

const Line = t.Object({
  level: t.Union([t.Literal("trace"), t.Literal("debug"), t.Literal("info"), t.Literal("warn"), t.Literal("error")]),
  stage: short,
  output: t.String({ maxLength: OUTPUT_LIMIT + 1 }),
});
export type Line = Static<typeof Line>;

const Kept = t.Object({ workspace_id: id, lineage: t.String({ maxLength: 256 }), serial: t.Integer({ minimum: 0 }) });
/** States named in one message. */
export const KEPT_LIMIT = 1_000;

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
    has_left,
    made: t.Optional(Made_),
  }),
  t.Object({ type: t.Literal("failed"), job_id: id, error: t.String({ maxLength: 65_536 }), code: short, has_left }),
  t.Object({ type: t.Literal("canceled"), job_id: id, has_left }),
  /** Asks for a piece of a file of the job. */
  t.Object({
    type: t.Literal("fetch"),
    job_id: id,
    file: t.Union(JOB_FILES.map((file) => t.Literal(file))),
    offset: t.Integer({ minimum: 0 }),
  }),
  /** What the build will cost a day; nothing is made until the server has answered. */
  t.Object({ type: t.Literal("charge"), job_id: id, daily_cost: t.Integer({ minimum: 0 }) }),
  /** States that lie at the worker, of builds that nobody has told it the end of. Said only to a server that says it answers. */
  t.Object({ type: t.Literal("kept"), provisioner: short, builds: t.Array(Kept, { maxItems: KEPT_LIMIT }) }),
  /** The next piece of what the build leaves; its end says whether that counts. */
  t.Object({ type: t.Literal("left"), job_id: id, text: t.String({ maxLength: PIECE_BYTES }) }),
]);
export type WorkerMessage = Static<typeof WorkerMessage>;

/** A job holds secrets: never logged, and sent only to a worker that has signed in. */
export type ServerMessage =
  /** `answers`: words of workers that this server knows alongside those of the first version. */
  | { readonly type: "welcome"; readonly id: string; readonly name: string; readonly answers?: readonly string[] }
  | { readonly type: "alive" }
  | { readonly type: "job"; readonly provisioner: string; readonly request: ProvisionRequest }
  /** Only look whether it could be done: a word of its own, so that no worker takes it for a job. Answered as a job is. */
  | { readonly type: "plan"; readonly provisioner: string; readonly request: ProvisionRequest }
  /** Find out what a template describes: answered with the pieces of a `foundText`. */
  | { readonly type: "import"; readonly provisioner: string; readonly request: ImportRequest }
  | { readonly type: "cancel"; readonly job_id: string }
  /** A piece that was asked for, in base64; `size` is that of the whole file. */
  | {
      readonly type: "piece";
      readonly job_id: string;
      readonly file: JobFile;
      readonly offset: number;
      readonly data: string;
      readonly size: number;
    }
  /** The answer to what a build costs: `refused` says in words why it may not. */
  | { readonly type: "charged"; readonly job_id: string; readonly refused?: string }
  /** What the build has left is stored: the worker needs no copy of its own. */
  | { readonly type: "forget"; readonly provisioner: string; readonly request: ProvisionRequest }
  /** Those of `kept` that are stored by now: the worker needs no copy of its own. */
  | { readonly type: "stored"; readonly provisioner: string; readonly builds: readonly KeptBuild[] };

const workerMessage = TypeCompiler.Compile(WorkerMessage);

// The server is trusted with the job itself; what is checked is that it speaks this protocol.
const request = t.Object({
  job_id: id,
  transition: t.String(),
  manifest: t.Object({ resources: t.Array(t.Unknown()) }),
});
const importRequest = t.Object({
  job_id: id,
  archive: t.Object({ path: t.String(), mimetype: short }),
  variables: t.Record(t.String(), t.String()),
  access_url: t.String(),
  accounts: t.Array(t.String()),
});
const serverMessage = TypeCompiler.Compile(
  t.Union([
    t.Object({ type: t.Literal("welcome"), id, name: short, answers: t.Optional(t.Array(short)) }),
    t.Object({ type: t.Literal("alive") }),
    t.Object({ type: t.Literal("job"), provisioner: short, request }),
    t.Object({ type: t.Literal("plan"), provisioner: short, request }),
    t.Object({ type: t.Literal("import"), provisioner: short, request: importRequest }),
    t.Object({ type: t.Literal("cancel"), job_id: id }),
    t.Object({ type: t.Literal("forget"), provisioner: short, request }),
    t.Object({ type: t.Literal("stored"), provisioner: short, builds: t.Array(Kept) }),
    t.Object({ type: t.Literal("charged"), job_id: id, refused: t.Optional(short) }),
    t.Object({
      type: t.Literal("piece"),
      job_id: id,
      file: t.Union(JOB_FILES.map((file) => t.Literal(file))),
      offset: t.Integer({ minimum: 0 }),
      data: t.String({ maxLength: 2 * PIECE_BYTES }),
      size: t.Integer({ minimum: 0 }),
    }),
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
