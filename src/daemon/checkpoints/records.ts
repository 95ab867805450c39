// Records which trees belong to the checkpoint of which message: one file per message, in a folder per chat. Expires records of deleted
// chats and of messages that can no longer be restored (rules UN-9, UN-10). Used by checkpoints.ts.
import { mkdir, readdir, rename, rm, rmdir, stat, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { uuid } from "#base/ids.ts";
import { readRegularText } from "#base/system/regular-file.ts";
import { type Checkpoint, type CopyCheckpoints, MAX_CHECKPOINTS_PER_CHAT } from "#schema/agents/checkpoint.ts";
import type { CapturedTree, Kind } from "./shadow.ts";

/**
 * Number of checkpoints by which a chat may exceed its limit. The oldest ones are removed in batches, because finding the objects that only
 * they reference is expensive.
 */
const PRUNE_BATCH = 20;
/** Maximum number of chats that one response lists. */
const MAX_CHATS = 500;
const HOUR_MS = 3_600_000;

/** One folder of a checkpoint. `gitfile`: the content of `.git` if it is a file, as in submodules and worktrees. */
export type CheckpointFolder = CapturedTree & { readonly root: string; readonly kind: Kind; readonly gitfile?: string };

/** The folders of the checkpoint, the outermost one first, and a description of each folder that could not be captured. */
export type CheckpointRecord = { readonly folders: readonly CheckpointFolder[]; readonly problems: readonly string[] };

export class CheckpointRecords {
  readonly #folder: string;

  constructor(folder: string) {
    this.#folder = folder;
  }

  /** Returns undefined if the record is missing or unreadable. */
  async read(checkpoint: Checkpoint): Promise<CheckpointRecord | undefined> {
    return readRecord(this.#toPath(checkpoint));
  }

  async write(checkpoint: Checkpoint, record: CheckpointRecord): Promise<void> {
    const file = this.#toPath(checkpoint);
    await mkdir(join(file, ".."), { recursive: true, mode: 0o700 });
    const temporaryFile = `${file}.${uuid()}`;
    await writeFile(temporaryFile, JSON.stringify(record));
    await rename(temporaryFile, file);
  }

  /** Copies the existing records to the other chat and keeps their age. */
  async copy({ from_chat_id, chat_id, messages }: CopyCheckpoints): Promise<void> {
    for (const { from_message_id, message_id } of messages) {
      const record = await this.read({ chat_id: from_chat_id, message_id: from_message_id });
      const stats = await stat(this.#toPath({ chat_id: from_chat_id, message_id: from_message_id })).catch(
        () => undefined,
      );
      if (!record || !stats) continue;
      await this.write({ chat_id, message_id }, record);
      await utimes(this.#toPath({ chat_id, message_id }), stats.atime, stats.mtime);
    }
  }

  #toPath({ chat_id, message_id }: Checkpoint): string {
    return join(this.#folder, chat_id, `${message_id}.json`);
  }

  /** Returns the chats that have checkpoints, up to a limit. */
  async listChats(): Promise<string[]> {
    return (await listEntries(this.#folder)).slice(0, MAX_CHATS);
  }

  /** Keeps only the newest checkpoints of a chat. Returns true if any were removed. */
  async prune(chat_id: string): Promise<boolean> {
    const ids = (await listEntries(join(this.#folder, chat_id))).flatMap((name) => parseNumber(name) ?? []);
    if (ids.length <= MAX_CHECKPOINTS_PER_CHAT + PRUNE_BATCH) return false;
    const old = ids.sort((one, other) => other - one).slice(MAX_CHECKPOINTS_PER_CHAT);
    for (const id of old) await rm(join(this.#folder, chat_id, `${id}.json`), { force: true });
    return true;
  }

  /** Removes records older than `before_ms` and temporary files left by a crash. Both times are in milliseconds since 1970. */
  async expire(before_ms: number, now_ms: number): Promise<void> {
    for (const chat_id of await listEntries(this.#folder)) {
      const chatFolder = join(this.#folder, chat_id);
      for (const name of await listEntries(chatFolder)) {
        const limit_ms = parseNumber(name) === undefined ? now_ms - HOUR_MS : before_ms;
        const stats = await stat(join(chatFolder, name)).catch(() => undefined);
        if (stats && stats.mtimeMs < limit_ms) await rm(join(chatFolder, name), { force: true });
      }
      // Succeeds only if the folder is empty.
      await rmdir(chatFolder).catch(() => {});
    }
  }

  async removeChats(chat_ids: readonly string[]): Promise<void> {
    for (const chat_id of chat_ids) await rm(join(this.#folder, chat_id), { recursive: true, force: true });
  }

  /** Returns the folders of all checkpoints. */
  async listFolders(): Promise<CheckpointFolder[]> {
    const folders: CheckpointFolder[] = [];
    for (const chat_id of await listEntries(this.#folder)) {
      for (const name of await listEntries(join(this.#folder, chat_id))) {
        const record = readRecord(join(this.#folder, chat_id, name));
        folders.push(...(record?.folders ?? []));
      }
    }
    return folders;
  }
}

const readRecord = (file: string): CheckpointRecord | undefined => {
  try {
    const record = JSON.parse(readRegularText(file) ?? "") as Partial<CheckpointRecord>;
    // Records of earlier versions depended on the user's repositories.
    return record.folders && record.problems ? { folders: record.folders, problems: record.problems } : undefined;
  } catch {
    return undefined;
  }
};

const parseNumber = (name: string): number | undefined => {
  const digits = /^(\d+)\.json$/.exec(name)?.[1];
  return digits === undefined ? undefined : Number(digits);
};

const listEntries = (folder: string): Promise<string[]> => readdir(folder).catch(() => []);
