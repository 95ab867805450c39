// Keys on their way to a terminal elsewhere: `~.` at the beginning of a line is for us, `~~` there is one `~`.

export class EscapeKeys {
  #isLineStart = true;
  #isHeld = false;

  /** What goes to the terminal, and whether the person wants to leave. */
  press(typed: string): { data: string; leave: boolean } {
    let data = "";
    for (const key of typed) {
      if (this.#isHeld) {
        this.#isHeld = false;
        if (key === ".") return { data, leave: true };
        data += key === "~" ? "~" : `~${key}`;
      } else if (key === "~" && this.#isLineStart) {
        this.#isHeld = true;
        continue;
      } else data += key;
      this.#isLineStart = key === "\r" || key === "\n";
    }
    return { data, leave: false };
  }
}
