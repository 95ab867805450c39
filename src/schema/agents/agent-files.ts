// Wire shapes of the daemon's HTTP API for files and processes (paths in facts/wire 4.1, shapes defined here). Used between the server's
// chat tools and the daemon; paths may begin with `~` and are otherwise relative to the agent's folder.
import { type Static, Type as t } from "@sinclair/typebox";
import { named } from "../shape-names.ts";

const Path = t.String({ minLength: 1, maxLength: 4_096 });

export const RenewToken = t.Object({ token: t.String({ minLength: 1, maxLength: 256 }) });
/** The response to a token renewal: the IDs of the sub-agents that the daemon created. */
export const RenewedToken = t.Object({ sub_agents: t.Array(t.String({ maxLength: 36 }), { maxItems: 50 }) });
export const ListDirectory = t.Object({ path: Path });
export const DirectoryEntry = named(
  "DirectoryEntry",
  t.Object({
    name: t.String(),
    absolute_path: t.String(),
    is_dir: t.Boolean({ description: "Whether the entry is a folder, or a link to one." }),
    size: t.Integer({ description: "The size of the file, in bytes." }),
  }),
);
export const DirectoryListing = named(
  "DirectoryListing",
  t.Object({
    absolute_path: t.String({ description: "The path of the folder." }),
    contents: t.Array(DirectoryEntry, { description: "The entries of the folder." }),
    truncated: t.Boolean({ description: "Whether the folder has more entries than the 10,000 that are returned." }),
  }),
);
export type DirectoryListing = Static<typeof DirectoryListing>;

export type FileLines = {
  content: string;
  file_size: number;
  lines_read: number;
  total_lines: number;
  /** For binary files; absent for text. */
  media_type?: string;
};

export const EditFiles = t.Object({
  /** Idempotency key: the same edits get the first response, so that a client whose connection broke can retry. */
  id: t.Optional(t.String({ minLength: 1, maxLength: 64 })),
  files: t.Array(
    t.Object({
      path: Path,
      edits: t.Array(
        t.Object({
          old_text: t.String({ minLength: 1 }),
          new_text: t.String(),
          replace_all: t.Optional(t.Boolean()),
        }),
        { minItems: 1, maxItems: 1_000 },
      ),
    }),
    { minItems: 1, maxItems: 100 },
  ),
});
export type EditFiles = Static<typeof EditFiles>;
/** A unified diff for each file, in the order of the request. `is_new` is set only in previews, for a file that does not exist yet. */
export type EditedFiles = { files: { path: string; diff: string; is_new?: boolean }[] };

/** Edits, or the complete new content of a file. */
export const PreviewFiles = t.Object({
  files: t.Optional(EditFiles.properties.files),
  write: t.Optional(t.Object({ path: Path, content: t.String() })),
});
export type PreviewFiles = Static<typeof PreviewFiles>;

export const StartProcess = t.Object({
  /** The ID of the process. A process with this ID that already exists is not started again. */
  id: t.Optional(t.String({ pattern: "^[0-9a-f-]{36}$" })),
  command: t.String({ minLength: 1, maxLength: 100_000 }),
  directory: t.Optional(Path),
  env: t.Optional(t.Record(t.String(), t.String())),
  /** If present, the process and its children may write only to these files. Rejected with 409 if the system cannot enforce that. */
  writable_only: t.Optional(t.Array(Path, { maxItems: 16 })),
  /** Milliseconds until the process is killed; 0 or absent means never. */
  timeout_ms: t.Optional(t.Integer({ minimum: 0 })),
});
/** `can_hold_back`: whether the workspace's operating system can restrict writes to the folders in `writable_only`. */
export type ProcessLimits = { can_hold_back: boolean };
export type StartProcess = Static<typeof StartProcess>;

export type ProcessInfo = {
  id: string;
  pid: number;
  command: string;
  directory: string;
  running: boolean;
  exit_code: number | null;
  timed_out: boolean;
  /** RFC 3339. */
  started_at: string;
  ended_at: string | null;
};

/**
 * `from` is the offset of the first byte of `output` in the complete output of the process; `next` is the offset at which to continue;
 * `more` means that more output is already available.
 */
export type ProcessOutput = ProcessInfo & {
  output: string;
  from: number;
  next: number;
  more: boolean;
  truncated: boolean;
};

export const SIGNALS = ["terminate", "kill", "interrupt"] as const;
export const SignalProcess = t.Object({ signal: t.Union(SIGNALS.map((signal) => t.Literal(signal))) });
export type SignalProcess = Static<typeof SignalProcess>;
