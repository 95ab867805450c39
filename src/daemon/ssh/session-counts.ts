// Counts open sessions by purpose. Editors set a variable to state the purpose (facts/tailnet-peer 7). Open sessions prevent an autostop of
// the workspace. [WN-6]

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

  /** Counts a session. Call the returned function when the session ends; further calls have no effect. */
  add(kind: SessionKind): () => void {
    this.#open[kind] += 1;
    let isOpen = true;
    return () => {
      if (isOpen) this.#open[kind] -= 1;
      isOpen = false;
    };
  }
}
