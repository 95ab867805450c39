// Versions of what is shown, by which answers kept in memory are told from those that must be recreated (rule ST-23). Counted by the store
// of a server that is the only one to write.
import type { Touch } from "../schema/touching.ts";
import type { Statement } from "./sql.ts";

/** Workspaces whose agents' writes are counted on their own; with more of them the counting starts over. */
const WORKSPACES = 50_000;

/** What a statement touches that says nothing of it. */
const ALL: readonly Touch[] = ["workspaces", "callers"];

/** What of lists of workspaces a batch changes: of all of them, of the one that it is about, or nothing. */
export const shownBy = (
  touched: ReadonlySet<Touch>,
  about: string | undefined,
): "all" | { readonly id: string } | undefined => {
  if (touched.has("workspaces")) return "all";
  if (!touched.has("agents")) return undefined;
  return about === undefined ? "all" : { id: about };
};

/** All that these statements touch. */
export const touchedBy = (batch: readonly Statement[]): ReadonlySet<Touch> =>
  new Set(batch.flatMap(({ touches = ALL }) => touches));

export class Versions {
  /** Raised by each batch that writes anything lists of workspaces show. */
  shown = 0;
  /** The same for what decides who a caller is. */
  callers = 0;
  /** The same for the audit log. */
  audit = 0;
  /** Writes of what several workspaces may show, and those of one workspace's agents by its id. */
  #shared = 0;
  readonly #ofAgents = new Map<string, number>();

  /** Raised by writes of what several workspaces may show, and with that of which ones a list has: not by those of one workspace's agents. */
  get listed(): number {
    return this.#shared;
  }

  /** What is shown of one workspace. */
  of(workspace_id: string): number {
    return this.#shared + (this.#ofAgents.get(workspace_id) ?? 0);
  }

  /** Writes the batch and then raises what it touches, also when it is not known whether it was written. `about` as of `Store.commit`. */
  async around(batch: readonly Statement[], about: string | undefined, write: () => Promise<void>): Promise<void> {
    const touched = touchedBy(batch);
    if (touched.size === 0) return write();
    try {
      await write();
    } finally {
      if (touched.has("callers")) this.callers += 1;
      if (touched.has("audit")) this.audit += 1;
      const changed = shownBy(touched, about);
      if (changed) {
        this.shown += 1;
        this.#raise(changed === "all" ? undefined : changed.id);
      }
    }
  }

  #raise(workspace_id: string | undefined): void {
    if (workspace_id !== undefined && (this.#ofAgents.size < WORKSPACES || this.#ofAgents.has(workspace_id))) {
      this.#ofAgents.set(workspace_id, (this.#ofAgents.get(workspace_id) ?? 0) + 1);
      return;
    }
    // Above every sum there has been, also when the single counts are given up.
    this.#shared += workspace_id === undefined ? 1 : 2 ** 32;
    if (workspace_id !== undefined) this.#ofAgents.clear();
  }
}
