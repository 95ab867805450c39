// Stores which repositories a chat works on, so that a restarted daemon shows the same changes: one file per chat in the daemon's state
// folder (rule GS-7). Used by watch.ts.
import { mkdir, readdir, rename, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { uuid } from "#base/ids.ts";
import { log } from "#base/log.ts";
import { readRegularText } from "#base/system/regular-file.ts";

/** Maximum number of chats; the least recently written ones are removed first. */
const MAX_CHATS = 256;

/** Repositories that a chat's tools have touched, and paths that are in no repository yet, in order. */
export type TouchedPaths = { readonly roots: readonly string[]; readonly paths: readonly string[] };

export class GitRecord {
  readonly #folder: string;
  #writing: Promise<void> = Promise.resolve();

  constructor(folder: string) {
    this.#folder = folder;
  }

  /** Returns the last record of the chat; undefined if it is missing or unreadable. */
  async read(chat: string): Promise<TouchedPaths | undefined> {
    try {
      const { roots, paths } = JSON.parse(readRegularText(this.#toFile(chat)) ?? "") as TouchedPaths;
      return isTextList(roots) && isTextList(paths) ? { roots, paths } : undefined;
    } catch {
      return undefined;
    }
  }

  /** Serializes writes. Never rejects: a full disk must not fail the tool. */
  write(chat: string, touched: TouchedPaths): Promise<void> {
    this.#writing = this.#writing
      .then(() => this.#write(chat, touched))
      .catch((error: unknown) =>
        log("daemon").debug("no record of the repositories of {chat}: {error}", { chat, error }),
      );
    return this.#writing;
  }

  async #write(chat: string, touched: TouchedPaths): Promise<void> {
    await mkdir(this.#folder, { recursive: true, mode: 0o700 });
    const file = this.#toFile(chat);
    const temporaryFile = `${file}.${uuid()}`;
    await writeFile(temporaryFile, JSON.stringify(touched), { mode: 0o600 });
    await rename(temporaryFile, file);
    await this.#prune();
  }

  async #prune(): Promise<void> {
    const names = await readdir(this.#folder);
    if (names.length <= MAX_CHATS) return;
    const files = await Promise.all(
      names.map(async (name) => ({
        name,
        at: (await stat(join(this.#folder, name)).catch(() => undefined))?.mtimeMs ?? 0,
      })),
    );
    const oldest = files.sort((one, other) => one.at - other.at).slice(0, names.length - MAX_CHATS);
    await Promise.all(oldest.map(({ name }) => rm(join(this.#folder, name), { force: true })));
  }

  #toFile(chat: string): string {
    return join(this.#folder, `${chat}.json`);
  }
}

const isTextList = (list: unknown): list is string[] =>
  Array.isArray(list) && list.every((one) => typeof one === "string");
