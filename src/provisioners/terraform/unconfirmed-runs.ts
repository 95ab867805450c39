// Manages the folders of completed builds until the server confirms that it has stored their state. A folder remains if the server or
// worker is killed before the confirmation, and it contains an unencrypted state. The caller lists the folders, checks which states are
// stored, and drops those folders (rule TF-37).
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { log } from "#base/log.ts";
import type { RetainedBuild } from "../provisioner.ts";
import { MAX_LINEAGE_CHARS } from "./pushed-state.ts";
import { parseSerial, Session } from "./session.ts";

export class RetainedBuilds {
  readonly #root: string;
  /** Resolves once no process of an earlier run is active in a folder. */
  readonly #waitForEarlierRuns: (folder: string) => Promise<void>;
  /** Number of active runs by workspace. A canceled run may still be ending when the next one begins. */
  readonly #busy = new Map<string, number>();
  /** Folders being removed; the workspace's next run waits for that. */
  readonly #removals = new Map<string, Promise<void>>();

  constructor(root: string, waitForEarlierRuns: (folder: string) => Promise<void>) {
    this.#root = root;
    this.#waitForEarlierRuns = waitForEarlierRuns;
  }

  /** Prevents listing and removing the workspace's folder while `work` runs. */
  async runWithFolderLocked<T>(workspace_id: string, work: () => Promise<T>): Promise<T> {
    while (this.#removals.has(workspace_id)) await this.#removals.get(workspace_id);
    this.#busy.set(workspace_id, (this.#busy.get(workspace_id) ?? 0) + 1);
    try {
      return await work();
    } finally {
      const remainingRuns = (this.#busy.get(workspace_id) ?? 1) - 1;
      if (remainingRuns > 0) this.#busy.set(workspace_id, remainingRuns);
      else this.#busy.delete(workspace_id);
    }
  }

  /** Removes the workspace's folder. Does nothing while a run or another removal is active. Never rejects. */
  async remove(workspace_id: string): Promise<void> {
    if (this.#busy.has(workspace_id) || this.#removals.has(workspace_id)) return;
    const removal = this.#getSession(workspace_id)
      .remove()
      .catch((error) => log("terraform").error("could not remove the folder of a build: {error}", { error }))
      .finally(() => this.#removals.delete(workspace_id));
    this.#removals.set(workspace_id, removal);
    await removal;
  }

  /** Returns the builds with readable states and removes folders without a state. Keeps unreadable states for an administrator. */
  async list(): Promise<RetainedBuild[]> {
    const retained: RetainedBuild[] = [];
    for (const workspace_id of await readdir(this.#root).catch(() => [])) {
      const session = this.#getSession(workspace_id);
      if (!this.#busy.has(workspace_id)) await this.#waitForEarlierRuns(session.folder);
      if (this.#busy.has(workspace_id)) continue;
      const build = await findRetained(session, workspace_id);
      if (build) retained.push(build);
      else if (await session.isEmpty()) await this.remove(workspace_id);
    }
    return retained;
  }

  /** Removes the folders that have not changed since they were listed. */
  async drop(stored: readonly RetainedBuild[]): Promise<void> {
    for (const { workspace_id, lineage, serial } of stored) {
      const current = await findRetained(this.#getSession(workspace_id), workspace_id);
      if (current?.lineage === lineage && current.serial === serial) await this.remove(workspace_id);
    }
  }

  #getSession(workspace_id: string): Session {
    return new Session(join(this.#root, workspace_id));
  }
}

const findRetained = async (session: Session, workspace_id: string): Promise<RetainedBuild | undefined> => {
  const text = await session.readState().catch(() => undefined);
  const state = text === undefined ? undefined : parseSerial(text);
  if (!state || !Number.isSafeInteger(state.serial) || state.serial < 0 || state.lineage.length > MAX_LINEAGE_CHARS)
    return undefined;
  return { workspace_id, ...state };
};
