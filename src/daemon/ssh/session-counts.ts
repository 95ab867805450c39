// How many sessions are open, by what they are for: editors say so in a variable (facts/tailnet-peer 7). What is counted keeps the workspace
// from stopping on its own. [WN-6]

export type SessionKind = "ssh" | "vscode" | "jetbrains";

/** Says what a session is for; it never reaches the session's program. */
export const SESSION_TYPE_VARIABLES: readonly string[] = ["SLIPWAY_SSH_SESSION_TYPE", "CODER_SSH_SESSION_TYPE"];

/** What a client calls its session, as a kind. */
export const toSessionKind = (name: string): SessionKind => {
  const lower = name.toLowerCase();
  return lower === "vscode" || lower === "jetbrains" ? lower : "ssh";
};

export class SessionCounts {
  readonly #open: Record<SessionKind, number> = { ssh: 0, vscode: 0, jetbrains: 0 };

  get open(): Readonly<Record<SessionKind, number>> {
    return { ...this.#open };
  }

  /** A session begins; what it answers is called when the session has ended, and does nothing a second time. */
  add(kind: SessionKind): () => void {
    this.#open[kind] += 1;
    let isOpen = true;
    return () => {
      if (isOpen) this.#open[kind] -= 1;
      isOpen = false;
    };
  }
}
