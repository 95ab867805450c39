// Handles escape keys of a remote terminal: `~.` at the beginning of a line disconnects, `~~` sends one `~`.

export class EscapeKeys {
  #isLineStart = true;
  #isHeld = false;

  /** Returns what to send, and whether the user wants to disconnect. */
  press(typed: string): { data: string; isEnd: boolean } {
    let data = "";
    for (const key of typed) {
      if (this.#isHeld) {
        this.#isHeld = false;
        if (key === ".") return { data, isEnd: true };
        data += key === "~" ? "~" : `~${key}`;
      } else if (key === "~" && this.#isLineStart) {
        this.#isHeld = true;
        continue;
      } else data += key;
      this.#isLineStart = key === "\r" || key === "\n";
    }
    return { data, isEnd: false };
  }
}
