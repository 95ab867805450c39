// Which trees belong to the checkpoint of which message: a file for each, in a folder for each chat. Forgets those of chats that no longer exist
// and those that nobody can ask for any more (rules UN-9, UN-10). Used by checkpoints.ts.
import { mkdir, readdir, readFile, rename, rm, rmdir, stat, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { uuid } from "#base/ids.ts";
import { CHECKPOINTS_OF_CHAT, type Checkpoint, type CopyCheckpoints } from "#schema/agents/checkpoint.ts";
import type { Captured, Kind } from "./shadow.ts";

/** So many more may be there: they go together, since finding what they alone have held costs something. */
const SLACK = 20;
/** Chats of which the server is told immediately. */
const MAX_CHATS = 500;
const HOUR_MS = 3_600_000;

/** One folder of a checkpoint. `gitfile`: what its `.git` says where that is a file, as in submodules and worktrees. */
export type KeptFolder = Captured & { readonly root: string; readonly kind: Kind; readonly gitfile?: string };

/** Which trees belong to the checkpoint, the outer folder first, and in words which folders have none. */
export type CheckpointRecord = { readonly folders: readonly KeptFolder[]; readonly problems: readonly string[] };

export class CheckpointRecords {
  readonly #folder: string;

  constructor(folder: string) {
    this.#folder = folder;
  }

  /** Undefined when there is none, or none that can be read. */
  async read(of: Checkpoint): Promise<CheckpointRecord | undefined> {
    return readRecord(this.#file(of));
  }

  async write(of: Checkpoint, record: CheckpointRecord): Promise<void> {
    const file = this.#file(of);
    await mkdir(join(file, ".."), { recursive: true, mode: 0o700 });
    const beside = `${file}.${uuid()}`;
    await writeFile(beside, JSON.stringify(record));
    await rename(beside, file);
  }

  /** Writes those that are there under the other chat, as old as they are. */
  async copy({ from_chat_id, chat_id, messages }: CopyCheckpoints): Promise<void> {
    for (const { from_message_id, message_id } of messages) {
      const record = await this.read({ chat_id: from_chat_id, message_id: from_message_id });
      const found = await stat(this.#file({ chat_id: from_chat_id, message_id: from_message_id })).catch(
        () => undefined,
      );
      if (!record || !found) continue;
      await this.write({ chat_id, message_id }, record);
      await utimes(this.#file({ chat_id, message_id }), found.atime, found.mtime);
    }
  }

  #file({ chat_id, message_id }: Checkpoint): string {
    return join(this.#folder, chat_id, `${message_id}.json`);
  }

  /** Chats that have checkpoints; not all of very many. */
  async chats(): Promise<string[]> {
    return (await listEntries(this.#folder)).slice(0, MAX_CHATS);
  }

  /** Leaves the newest of a chat. True when something went. */
  async cut(chat_id: string): Promise<boolean> {
    const ids = (await listEntries(join(this.#folder, chat_id))).flatMap((name) => parseNumber(name) ?? []);
    if (ids.length <= CHECKPOINTS_OF_CHAT + SLACK) return false;
    const old = ids.sort((one, other) => other - one).slice(CHECKPOINTS_OF_CHAT);
    for (const id of old) await rm(join(this.#folder, chat_id, `${id}.json`), { force: true });
    return true;
  }

  /** Forgets what is older than `before`, and what a crash has left alongside it. `now` in milliseconds. */
  async expire(before: number, now: number): Promise<void> {
    for (const chat_id of await listEntries(this.#folder)) {
      const place = join(this.#folder, chat_id);
      for (const name of await listEntries(place)) {
        const limit = parseNumber(name) === undefined ? now - HOUR_MS : before;
        const found = await stat(join(place, name)).catch(() => undefined);
        if (found && found.mtimeMs < limit) await rm(join(place, name), { force: true });
      }
      // Only when it is empty.
      await rmdir(place).catch(() => {});
    }
  }

  async forget(chat_ids: readonly string[]): Promise<void> {
    for (const chat_id of chat_ids) await rm(join(this.#folder, chat_id), { recursive: true, force: true });
  }

  /** All folders of all checkpoints. */
  async folders(): Promise<KeptFolder[]> {
    const found: KeptFolder[] = [];
    for (const chat_id of await listEntries(this.#folder)) {
      for (const name of await listEntries(join(this.#folder, chat_id))) {
        const record = await readRecord(join(this.#folder, chat_id, name));
        found.push(...(record?.folders ?? []));
      }
    }
    return found;
  }
}

const readRecord = async (file: string): Promise<CheckpointRecord | undefined> => {
  try {
    const record = JSON.parse(await readFile(file, "utf8")) as Partial<CheckpointRecord>;
    // Versions before this one kept what depended on the user's repositories.
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
