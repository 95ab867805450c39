// Manages the folder <data_dir>/workspaces/<id>/ of a local workspace, with the user's home, the daemon's log and the record of the
// daemon's process. Rejects every other path, and follows no link out of the folder (rule LP-3).
import {
  chmodSync,
  chownSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  realpathSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { join, resolve } from "node:path";
import { failpoint } from "#base/failpoint.ts";
import { isUuid } from "#base/ids.ts";
import { readRegularText } from "#base/system/regular-file.ts";
import { createHome } from "./home-files.ts";
import { emptyHomeAsOwner, grantAccess, restrictToServer } from "./ownership.ts";
import type { ProcessMark } from "./process-table.ts";
import type { LocalUser } from "./user.ts";

/** The record of a started daemon. The token is stored only here and in the file from which the daemon reads it. */
export type DaemonRecord = ProcessMark & { readonly token: string };

export class WorkspaceFolder {
  readonly path: string;
  readonly home: string;
  readonly logFile: string;
  /** The file from which the daemon reads its token, since environments are visible to process listings. */
  readonly tokenFile: string;
  /** The folder of snapshots, which only the server can access. Each snapshot is a folder with its ID as the name. */
  readonly snapshots: string;
  readonly #root: string;
  readonly #record: string;
  /** The path of the old home during a replacement. */
  readonly #replaced: string;

  /** `root` is <data_dir>/workspaces. */
  constructor(root: string, workspace_id: string) {
    if (!isUuid(workspace_id)) throw new Error("a workspace folder is named by a UUID");
    this.#root = resolve(root);
    this.path = join(this.#root, workspace_id.toLowerCase());
    this.home = join(this.path, "home");
    this.logFile = join(this.path, "daemon.log");
    this.tokenFile = join(this.path, "token");
    this.snapshots = join(this.path, "snapshots");
    this.#record = join(this.path, "daemon.json");
    this.#replaced = join(this.path, "home.replaced");
  }

  /** Creates missing folders. Only the server's user can read them, except the home, which belongs to `user` if given. */
  create(user?: LocalUser): void {
    this.prepare();
    if (readKind(this.home) === undefined) createHome(this.home);
    if (user) grantAccess(this.#root, this.path, this.home, user);
    else restrictToServer([this.path]);
  }

  /** Creates the folder without a home, if it is missing. */
  prepare(): void {
    mkdirSync(this.#root, { recursive: true, mode: 0o700 });
    mkdirSync(this.path, { recursive: true, mode: 0o700 });
    this.#check();
    this.finishReplacement();
  }

  /** Removes the token file, because the trash must contain no secrets. */
  removeToken(): void {
    rmSync(this.tokenFile, { force: true });
  }

  /** Writes the token so that only the daemon's user can read it. Removes an existing file first, because another user may own it. */
  writeToken(token: string, user?: { readonly uid: number; readonly gid: number }): void {
    rmSync(this.tokenFile, { force: true });
    writeFileSync(this.tokenFile, `${token}\n`, { mode: 0o600, flag: "wx" });
    if (user) chownSync(this.tokenFile, user.uid, user.gid);
  }

  /**
   * Replaces the home by the folder `draft`. Returns the path of the old home, which may be removed. After a crash, `finishReplacement`
   * restores the old home or finds the new one.
   */
  replaceHome(draft: string): string | undefined {
    const hadHome = readKind(this.home) !== undefined;
    if (hadHome) renameSync(this.home, this.#replaced);
    failpoint("home_replaced");
    renameSync(draft, this.home);
    return hadHome ? this.#replaced : undefined;
  }

  /** Restores the home if its replacement was interrupted. Returns the path of the old home if the home was already replaced. */
  finishReplacement(): string | undefined {
    if (readKind(this.#replaced) === undefined) return undefined;
    if (readKind(this.home) !== undefined) return this.#replaced;
    renameSync(this.#replaced, this.home);
    return undefined;
  }

  /** Returns the path of a snapshot. Does not create the folder. */
  toSnapshotPath(id: string): string {
    if (!isUuid(id)) throw new Error("a snapshot is named by a UUID");
    return join(this.snapshots, id.toLowerCase());
  }

  /** Creates an empty folder for a new snapshot. It belongs to the user that copies the files, or to the server. */
  createDraft(id: string, user?: Pick<LocalUser, "uid" | "gid">): string {
    const draft = this.toDraftPath(id, user ? "user" : "server");
    mkdirSync(this.snapshots, { recursive: true, mode: 0o700 });
    chmodSync(this.snapshots, 0o700);
    mkdirSync(draft, { mode: 0o700 });
    if (user) chownSync(draft, user.uid, user.gid);
    return draft;
  }

  /** Makes the server the owner of a draft, so that the user that has filled it can no longer change it, even in an open folder. */
  closeDraft(draft: string): void {
    chownSync(draft, process.geteuid?.() ?? 0, process.getegid?.() ?? 0);
  }

  /**
   * Returns the folder of a snapshot in progress. It is next to the home if the workspace's user writes it; otherwise it is in a folder
   * that only the server can access.
   */
  toDraftPath(id: string, writer: "server" | "user"): string {
    if (!isUuid(id)) throw new Error("a snapshot is named by a UUID");
    return join(writer === "user" ? this.path : this.snapshots, `${id.toLowerCase()}.draft`);
  }

  get exists(): boolean {
    return readKind(this.path) !== undefined;
  }

  /** Returns the record of the last started daemon; undefined if it is missing or unreadable. */
  readRecord(): DaemonRecord | undefined {
    try {
      const { pid, started, token } = JSON.parse(readRegularText(this.#record) ?? "") as Partial<DaemonRecord>;
      return Number.isInteger(pid) && Number(pid) > 1 && typeof started === "string" && typeof token === "string"
        ? { pid: Number(pid), started, token }
        : undefined;
    } catch {
      return undefined;
    }
  }

  /** Replaces the record atomically. */
  writeRecord(record: DaemonRecord): void {
    const draft = `${this.#record}.new`;
    writeFileSync(draft, JSON.stringify(record), { mode: 0o600 });
    renameSync(draft, this.#record);
  }

  removeRecord(): void {
    rmSync(this.#record, { force: true });
  }

  /** Removes the folder with everything in it. Succeeds if it does not exist. Removes links without following them. */
  remove(): void {
    if (!this.exists) return;
    this.#check();
    if (readKind(this.home) === "directory") emptyHomeAsOwner(this.home);
    try {
      rmSync(this.path, { recursive: true, force: true });
    } catch {
      // Package caches make their folders read-only.
      makeWritable(this.path);
      rmSync(this.path, { recursive: true, force: true });
    }
  }

  #check(): void {
    if (readKind(this.path) !== "directory") throw new Error(`${this.path} is not a folder`);
    if (realpathSync(this.path) !== join(realpathSync(this.#root), this.path.slice(this.#root.length + 1))) {
      throw new Error(`${this.path} leads out of the data directory`);
    }
  }
}

const readKind = (path: string): "directory" | "other" | undefined => {
  const stat = lstatSync(path, { throwIfNoEntry: false });
  if (!stat) return undefined;
  return stat.isDirectory() ? "directory" : "other";
};

const makeWritable = (folder: string): void => {
  chmodSync(folder, 0o700);
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    if (entry.isDirectory()) makeWritable(join(folder, entry.name));
  }
};
