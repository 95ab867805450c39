// Counts open sessions by purpose, which editors state in a variable (facts/tailnet-peer 7). Counted sessions keep the workspace from
// stopping automatically. [WN-6]

export type SessionKind = "ssh" | "vscode" | "jetbrains";

/** Variables that state a session's purpose; they are not passed to the session's program. */
export const SESSION_TYPE_VARIABLES: readonly string[] = ["SLIPWAY_SSH_SESSION_TYPE", "CODER_SSH_SESSION_TYPE"];

/** Returns the kind for a client's session type. */
export const toSessionKind = (name: string): SessionKind => {
  const lower = name.toLowerCase();
  return lower === "vscode" || lower === "jetbrains" ? lower : "ssh";
};

export class SessionCounts {
  readonly #open: Record<SessionKind, number> = { ssh: 0, vscode: 0, jetbrains: 0 };

  get open(): Readonly<Record<SessionKind, number>> {
    return { ...this.#open };
  }

  /** Counts a session. The returned function ends it and may be called more than once. */
  add(kind: SessionKind): () => void {
    this.#open[kind] += 1;
    let isOpen = true;
    return () => {
      if (isOpen) this.#open[kind] -= 1;
      isOpen = false;
    };
  }
}
