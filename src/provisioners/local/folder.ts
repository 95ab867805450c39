// The folder of a local workspace: <data_dir>/workspaces/<id>/ with the home of its user, the daemon's log and the record of its
// process. Refuses every path that is not exactly that, and follows no link out of it (rule LP-3).
import {
  chmodSync,
  chownSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { join, resolve } from "node:path";
import { failpoint } from "#base/failpoint.ts";
import { isUuid } from "#base/ids.ts";
import { makeHome } from "./home-files.ts";
import { closeToOthers, emptyAsItsUser, openToUser } from "./ownership.ts";
import type { ProcessMark } from "./process-table.ts";
import type { LocalUser } from "./user.ts";

/** What is remembered of a started daemon. The token is in no other place than this and the file that the daemon reads it from. */
export type DaemonRecord = ProcessMark & { readonly token: string };

export class WorkspaceFolder {
  readonly path: string;
  readonly home: string;
  readonly logFile: string;
  /** Where the daemon reads its token: an environment is seen by whatever lists it. */
  readonly tokenFile: string;
  /** Copies of the home, for the server alone: a folder for each, named by its id. */
  readonly snapshots: string;
  readonly #root: string;
  readonly #record: string;
  /** The home that another takes the place of, for as long as that takes. */
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

  /** Makes what is missing; only the server's user may look inside, or the one the workspace runs as into its home. */
  create(user?: LocalUser): void {
    this.prepare();
    if (readKind(this.home) === undefined) makeHome(this.home);
    if (user) openToUser(this.#root, this.path, this.home, user);
    else closeToOthers([this.path]);
  }

  /** Makes the folder, if it is missing, without a home in it. */
  prepare(): void {
    mkdirSync(this.#root, { recursive: true, mode: 0o700 });
    mkdirSync(this.path, { recursive: true, mode: 0o700 });
    this.#check();
    this.settle();
  }

  /** Removes what the daemon read its token from: no secret stays in the trash. */
  forgetToken(): void {
    rmSync(this.tokenFile, { force: true });
  }

  /** Only the daemon's user can read it. Removed first: what stands there may be another user's. */
  keepToken(token: string, user?: { readonly uid: number; readonly gid: number }): void {
    rmSync(this.tokenFile, { force: true });
    writeFileSync(this.tokenFile, `${token}\n`, { mode: 0o600, flag: "wx" });
    if (user) chownSync(this.tokenFile, user.uid, user.gid);
  }

  /**
   * Puts the folder `draft` in the place of the home: after a crash in the middle `settle` finds the one or the other, never neither. Answers
   * where the former home is now, which may be removed.
   */
  replaceHome(draft: string): string | undefined {
    const had = readKind(this.home) !== undefined;
    if (had) renameSync(this.home, this.#replaced);
    failpoint("home_replaced");
    renameSync(draft, this.home);
    return had ? this.#replaced : undefined;
  }

  /** Puts back the home whose place another was about to take. Answers what is left of a former home, which may be removed. */
  settle(): string | undefined {
    if (readKind(this.#replaced) === undefined) return undefined;
    if (readKind(this.home) !== undefined) return this.#replaced;
    renameSync(this.#replaced, this.home);
    return undefined;
  }

  /** The folder of a copy of the home; made by whoever calls. */
  snapshot(id: string): string {
    if (!isUuid(id)) throw new Error("a snapshot is named by a UUID");
    return join(this.snapshots, id.toLowerCase());
  }

  /** Makes an empty folder for a copy on its way in: for the server alone, or for the user that does the copying. */
  makeDraft(id: string, user?: Pick<LocalUser, "uid" | "gid">): string {
    const draft = this.draft(id, user ? "user" : "server");
    mkdirSync(this.snapshots, { recursive: true, mode: 0o700 });
    chmodSync(this.snapshots, 0o700);
    mkdirSync(draft, { mode: 0o700 });
    if (user) chownSync(draft, user.uid, user.gid);
    return draft;
  }

  /** Where a copy is on its way in or out; what the workspace's user writes is beside the home, the rest where only the server comes. */
  draft(id: string, by: "server" | "user"): string {
    if (!isUuid(id)) throw new Error("a snapshot is named by a UUID");
    return join(by === "user" ? this.path : this.snapshots, `${id.toLowerCase()}.draft`);
  }

  get exists(): boolean {
    return readKind(this.path) !== undefined;
  }

  /** The daemon that was started last; undefined when none is known or the record cannot be read. */
  record(): DaemonRecord | undefined {
    try {
      const { pid, started, token } = JSON.parse(readFileSync(this.#record, "utf8")) as Partial<DaemonRecord>;
      return Number.isInteger(pid) && Number(pid) > 1 && typeof started === "string" && typeof token === "string"
        ? { pid: Number(pid), started, token }
        : undefined;
    } catch {
      return undefined;
    }
  }

  /** Replaced as a whole, so that a crash leaves the old record or the new one. */
  remember(record: DaemonRecord): void {
    const draft = `${this.#record}.new`;
    writeFileSync(draft, JSON.stringify(record), { mode: 0o600 });
    renameSync(draft, this.#record);
  }

  forget(): void {
    rmSync(this.#record, { force: true });
  }

  /** Removes the folder with everything in it; no error when it is not there. Links in it are removed, not followed. */
  remove(): void {
    if (!this.exists) return;
    this.#check();
    if (readKind(this.home) === "directory") emptyAsItsUser(this.home);
    try {
      rmSync(this.path, { recursive: true, force: true });
    } catch {
      // Package caches make their folders read-only; what belongs to us can be opened again.
      unlock(this.path);
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

const unlock = (folder: string): void => {
  chmodSync(folder, 0o700);
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    if (entry.isDirectory()) unlock(join(folder, entry.name));
  }
};
