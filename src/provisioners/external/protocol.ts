// The protocol between a server and an external worker: JSON, one message per WebSocket frame. All incoming messages are validated here; an
// invalid message closes the connection (rule PV-12).

import { type Static, type TSchema, Type as t } from "@sinclair/typebox";
import { TypeCompiler } from "@sinclair/typebox/compiler";
import { tryParseJson } from "#base/json/read.ts";
import { ManifestResource } from "#schema/templates/manifest.ts";
import type { ProvisionRequest, RetainedBuild } from "../provisioner.ts";
import type { ImportRequest } from "../terraform/import.ts";
import { JOB_FILES, type JobFile, MAX_CHUNK_SIZE } from "./chunked-data.ts";
import { toOpenSchema } from "./reported-resources.ts";

/** The interval of heartbeats, and the time without a message after which the connection is considered lost. */
export const HEARTBEAT_INTERVAL_MS = 5_000;
export const SILENCE_TIMEOUT_MS = 15_000;
/** Maximum bytes of output per job, which is also what the server stores. */
export const MAX_OUTPUT_BYTES = 1_048_576;
/** Maximum number of timings per job. */
export const MAX_TIMINGS = 1_000;
/** Maximum number of lines per message. */
export const MAX_LINES = 200;
/** Maximum bytes of a job that is sent to a worker. The server's socket buffers at most twice as much. */
export const MAX_JOB_BYTES = 2 * 1024 * 1024;
/** Maximum characters of a build's state. */
const MAX_STATE_CHARS = 1_048_576;

const id = t.String({ maxLength: 64 });
const ShortText = t.String({ maxLength: 4_096 });
/** Unix milliseconds that a Date can represent. */
const time = t.Number({ minimum: 0, maximum: 8.64e15 });
/** A number that stays exact, also as the position in a file. */
const count = t.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER });

/** True if the preceding messages of type `left` are the build's result. */
const has_left = t.Optional(t.Boolean());

/** The resources of a Terraform build. */
const ProvisionedSchema = t.Object({
  resources: t.Array(toOpenSchema(ManifestResource), { maxItems: 4_096 }),
  daily_cost: count,
  secrets: t.Array(t.String({ maxLength: 65_536 }), { maxItems: 1_000 }),
});

const Line = t.Object({
  level: t.Union([t.Literal("trace"), t.Literal("debug"), t.Literal("info"), t.Literal("warn"), t.Literal("error")]),
  stage: ShortText,
  output: t.String({ maxLength: MAX_OUTPUT_BYTES + 1 }),
});
export type Line = Static<typeof Line>;

const RetainedSchema = t.Object({
  workspace_id: id,
  lineage: t.String({ maxLength: 256 }),
  serial: count,
});
/** Maximum number of states named in one message. */
export const MAX_RETAINED = 1_000;

export const WorkerMessage = t.Union([
  t.Object({ type: t.Literal("alive") }),
  /** The worker stops: it takes no more jobs, and the server reassigns its running jobs when the connection closes. */
  t.Object({ type: t.Literal("leaving") }),
  t.Object({ type: t.Literal("log"), job_id: id, lines: t.Array(Line, { maxItems: MAX_LINES }) }),
  t.Object({
    type: t.Literal("timing"),
    job_id: id,
    timing: t.Object({
      action: ShortText,
      resource: ShortText,
      source: ShortText,
      stage: ShortText,
      started_at: time,
      ended_at: time,
    }),
  }),
  t.Object({
    type: t.Literal("done"),
    job_id: id,
    state: t.Union([t.String({ maxLength: MAX_STATE_CHARS }), t.Null()]),
    has_left,
    made: t.Optional(ProvisionedSchema),
  }),
  t.Object({
    type: t.Literal("failed"),
    job_id: id,
    error: t.String({ maxLength: 65_536 }),
    code: ShortText,
    has_left,
  }),
  t.Object({ type: t.Literal("canceled"), job_id: id, has_left }),
  /** Requests a chunk of a file of the job. */
  t.Object({
    type: t.Literal("fetch"),
    job_id: id,
    file: t.Union(JOB_FILES.map((file) => t.Literal(file))),
    offset: count,
  }),
  /** The build's daily cost. The worker creates no resources until the server has answered with `charged`. */
  t.Object({ type: t.Literal("charge"), job_id: id, daily_cost: count }),
  /**
   * States of builds for which the server has not confirmed the result, so that the worker still stores them. Sent only to a server that
   * announces that it answers this message.
   */
  t.Object({
    type: t.Literal("kept"),
    provisioner: ShortText,
    builds: t.Array(RetainedSchema, { maxItems: MAX_RETAINED }),
  }),
  /** The next chunk of the build's result. It is valid only if the last message of the build has `has_left`. */
  t.Object({ type: t.Literal("left"), job_id: id, text: t.String({ maxLength: MAX_CHUNK_SIZE }) }),
]);
export type WorkerMessage = Static<typeof WorkerMessage>;

/** A job contains secrets, so it is never logged, and is sent only to an authenticated worker. */
export type ServerMessage =
  /** `answers`: worker messages that this server supports in addition to the first version's. */
  | { readonly type: "welcome"; readonly id: string; readonly name: string; readonly answers?: readonly string[] }
  | { readonly type: "alive" }
  | { readonly type: "job"; readonly provisioner: string; readonly request: ProvisionRequest }
  /** Requests a dry run. It is a separate type, so that old workers do not run it as a job. The answers are those of a job. */
  | { readonly type: "plan"; readonly provisioner: string; readonly request: ProvisionRequest }
  /** Requests the import of a template. The worker answers with the result of `formatImport` in chunks. */
  | { readonly type: "import"; readonly provisioner: string; readonly request: ImportRequest }
  | { readonly type: "cancel"; readonly job_id: string }
  /** A requested chunk in base64. `size`: the size of the whole file. */
  | {
      readonly type: "piece";
      readonly job_id: string;
      readonly file: JobFile;
      readonly offset: number;
      readonly data: string;
      readonly size: number;
    }
  /** The decision on a build's cost. `refused`: why the owner may not have these resources. */
  | { readonly type: "charged"; readonly job_id: string; readonly refused?: string }
  /** The build's result is stored, so the worker can remove its copy. */
  | { readonly type: "forget"; readonly provisioner: string; readonly request: ProvisionRequest }
  /** The states of `kept` that are stored, so that the worker can remove its copies. */
  | { readonly type: "stored"; readonly provisioner: string; readonly builds: readonly RetainedBuild[] };

const workerMessage = TypeCompiler.Compile(WorkerMessage);

// The worker trusts the content of jobs. These schemas only check that the server speaks the protocol.
const request = t.Object({
  job_id: id,
  transition: t.String(),
  manifest: t.Object({ resources: t.Array(t.Unknown()) }),
});
const importRequest = t.Object({
  job_id: id,
  archive: t.Object({ path: t.String(), mimetype: ShortText }),
  variables: t.Record(t.String(), t.String()),
  access_url: t.String(),
  accounts: t.Array(t.String()),
});
const serverMessage = TypeCompiler.Compile(
  t.Union([
    t.Object({ type: t.Literal("welcome"), id, name: ShortText, answers: t.Optional(t.Array(ShortText)) }),
    t.Object({ type: t.Literal("alive") }),
    t.Object({ type: t.Literal("job"), provisioner: ShortText, request }),
    t.Object({ type: t.Literal("plan"), provisioner: ShortText, request }),
    t.Object({ type: t.Literal("import"), provisioner: ShortText, request: importRequest }),
    t.Object({ type: t.Literal("cancel"), job_id: id }),
    t.Object({ type: t.Literal("forget"), provisioner: ShortText, request }),
    t.Object({ type: t.Literal("stored"), provisioner: ShortText, builds: t.Array(RetainedSchema) }),
    t.Object({ type: t.Literal("charged"), job_id: id, refused: t.Optional(ShortText) }),
    t.Object({
      type: t.Literal("piece"),
      job_id: id,
      file: t.Union(JOB_FILES.map((file) => t.Literal(file))),
      offset: count,
      data: t.String({ maxLength: 2 * MAX_CHUNK_SIZE }),
      size: count,
    }),
  ]) as TSchema,
);

/** Returns the message, or undefined if it is not a valid worker message. */
export const readWorkerMessage = (data: string | Uint8Array): WorkerMessage | undefined => {
  const value = parse(data);
  return workerMessage.Check(value) ? value : undefined;
};

/** Returns the message, or undefined if it is not a valid server message. */
export const readServerMessage = (data: string | Uint8Array): ServerMessage | undefined => {
  const value = parse(data);
  return serverMessage.Check(value) ? (value as ServerMessage) : undefined;
};

const parse = (data: string | Uint8Array): unknown => (typeof data === "string" ? tryParseJson(data) : undefined);
