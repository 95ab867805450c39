// Decides whether a sed script only reads: each command is parsed like sed does, and anything not understood counts as writing. Pure.

/** Excludes `w`, `W` and `e`, which write a file or run a command. */
const PLAIN = /^[=dDgGhHnNpPxzF]/;
const WITH_NUMBER = /^[lLqQ][ \t]*\d*/;
const LABEL = /^[:btT][ \t]*[^;}\s]*/;
/** Up to the end of the line, which a backslash continues. */
const TEXT = /^[aic](?:\\[\s\S]|[^\\\n])*/;
const FILE = /^[rR][^\n]*/;
const ADDRESS = /^(?:\d+(?:~\d+)?|[+~]\d+|\$)/;
/** Excludes `w` and `e`. */
const FLAGS = /^[gpiImM0-9]*/;

/** True if the script may write a file or run a command. */
export const isWritingScript = (script: string): boolean => {
  let rest = script;
  const consume = (pattern: RegExp): boolean => {
    const found = pattern.exec(rest)?.[0];
    if (!found) return false;
    rest = rest.slice(found.length);
    return true;
  };
  const consumeAddress = (): boolean => {
    if (consume(ADDRESS)) return true;
    const parts = rest.startsWith("\\") ? 2 : 1;
    if (parts === 1 && !rest.startsWith("/")) return false;
    const end = findPart(rest, parts, rest[parts - 1]);
    if (end === undefined) return false;
    rest = rest.slice(end).replace(/^[IM]+/, "");
    return true;
  };
  while (consume(/^[\s;}]+/) || rest !== "") {
    if (consume(/^#[^\n]*/)) continue;
    if (consumeAddress() && consume(/^[ \t]*,[ \t]*/) && !consumeAddress()) return true;
    consume(/^[ \t!]+/);
    if (rest === "") break;
    if (consume(/^\{/) || consume(TEXT) || consume(FILE) || consume(LABEL)) continue;
    if (!consume(PLAIN) && !consume(WITH_NUMBER)) {
      const end = /^[sy]/.test(rest) ? findPart(rest, 2, rest[1], 2) : undefined;
      if (end === undefined) return true;
      rest = rest.slice(end);
      consume(FLAGS);
    }
    if (!/^[ \t]*(?:[;}#\n]|$)/.test(rest)) return true;
  }
  return false;
};

/**
 * Returns the end of this many parts from `from`, each ended by the delimiter; undefined if incomplete or ambiguous between programs: a
 * delimiter in brackets, or a line break.
 */
const findPart = (text: string, from: number, delimiter: string | undefined, parts = 1): number | undefined => {
  if (delimiter === undefined || !/^[!-~ \t]$/.test(delimiter) || delimiter === "\\") return undefined;
  let at = from;
  for (let part = 0; part < parts; part++) {
    const started = at;
    for (; text[at] !== delimiter; at++) {
      if (at >= text.length || text[at] === "\n") return undefined;
      if (text[at] === "\\") at++;
    }
    const inside = text
      .slice(started, at)
      .replaceAll(/\\[\s\S]/g, "x")
      .replaceAll(/\[\^?\]?[^\]]*(\]|$)/g, (_, end: string) => (end === "" ? "[" : ""));
    if (part === 0 && inside.includes("[")) return undefined;
    at++;
  }
  return at;
};
