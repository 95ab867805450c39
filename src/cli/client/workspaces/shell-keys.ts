// Handles escape keys of a remote terminal: `~.` at the beginning of a line disconnects, `~~` sends one `~`.

export class EscapeKeys {
  #isLineStart = true;
  #isTildeHeld = false;

  /** Returns what to send, and whether the user wants to disconnect. */
  press(typed: string): { data: string; disconnects: boolean } {
    let data = "";
    for (const key of typed) {
      if (this.#isTildeHeld) {
        this.#isTildeHeld = false;
        if (key === ".") return { data, disconnects: true };
        data += key === "~" ? "~" : `~${key}`;
      } else if (key === "~" && this.#isLineStart) {
        this.#isTildeHeld = true;
        continue;
      } else data += key;
      this.#isLineStart = key === "\r" || key === "\n";
    }
    return { data, disconnects: false };
  }
}
