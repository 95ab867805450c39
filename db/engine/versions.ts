// Versions of data that answers contain, which decide whether cached answers are still valid (rule ST-23). Used by a store that is the only
// writer.
import type { Touch } from "../schema/cache-dependencies.ts";
import type { Statement } from "./sql.ts";

/** Maximum workspaces whose agents' writes are counted separately. Beyond that, all counters start over. */
const MAX_WORKSPACES = 50_000;

/** The data that a statement without `touches` affects. */
const ALL_TOUCHES: readonly Touch[] = ["workspaces", "callers"];

/** Returns the workspaces that a batch changes in lists: all of them, the one in `about`, or none. */
export const findShownChange = (
  touched: ReadonlySet<Touch>,
  about: string | undefined,
): "all" | { readonly id: string } | undefined => {
  if (touched.has("workspaces")) return "all";
  if (!touched.has("agents")) return undefined;
  return about === undefined ? "all" : { id: about };
};

/** Returns the kinds of data that these statements touch. */
export const collectTouches = (batch: readonly Statement[]): ReadonlySet<Touch> =>
  new Set(batch.flatMap(({ touches = ALL_TOUCHES }) => touches));

export class Versions {
  /** Incremented by each batch that changes data in lists of workspaces. */
  shown = 0;
  /** Like `shown`, for the identity of callers. */
  callers = 0;
  /** Like `shown`, for the audit log. */
  audit = 0;
  /** The number of writes that may affect several workspaces, and the number of writes of a workspace's agents by its ID. */
  #shared = 0;
  readonly #byWorkspace = new Map<string, number>();

  /**
   * Incremented by writes that several workspaces may show, and therefore also when the selection of listed workspaces changes. Writes of
   * one workspace's agents do not increment it.
   */
  get listed(): number {
    return this.#shared;
  }

  /** Returns the version of one workspace's data. */
  getVersion(workspace_id: string): number {
    return this.#shared + (this.#byWorkspace.get(workspace_id) ?? 0);
  }

  /**
   * Writes the batch and then increments the affected versions, even if the result of the write is unknown. `about` as in `Store.commit`.
   */
  async withIncrement(
    batch: readonly Statement[],
    about: string | undefined,
    write: () => Promise<void>,
  ): Promise<void> {
    const touched = collectTouches(batch);
    if (touched.size === 0) return write();
    try {
      await write();
    } finally {
      if (touched.has("callers")) this.callers += 1;
      if (touched.has("audit")) this.audit += 1;
      const changed = findShownChange(touched, about);
      if (changed) {
        this.shown += 1;
        this.#increment(changed === "all" ? undefined : changed.id);
      }
    }
  }

  #increment(workspace_id: string | undefined): void {
    if (
      workspace_id !== undefined &&
      (this.#byWorkspace.size < MAX_WORKSPACES || this.#byWorkspace.has(workspace_id))
    ) {
      this.#byWorkspace.set(workspace_id, (this.#byWorkspace.get(workspace_id) ?? 0) + 1);
      return;
    }
    // Exceeds every previous sum, even when the separate counters are dropped.
    this.#shared += workspace_id === undefined ? 1 : 2 ** 32;
    if (workspace_id !== undefined) this.#byWorkspace.clear();
  }
}
