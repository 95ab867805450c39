// Finds here-documents in a RUN, COPY or ADD of a Dockerfile. Versions of the engine disagree on where they begin, and a here-document hides the
// lines that follow from the builder: each `<<` that any version could read as one counts.

/** Returns the text with which a here-document of the line may begin; undefined if no engine finds one. */
export const findHeredoc = (line: string): string | undefined => {
  const pair = PAIR.exec(line);
  if (!pair) return undefined;
  if (ODD_VARIABLE.test(line)) return toExcerpt(line, pair.index);
  // The engine reads words as a shell does: a here-document is a word of digits, two signs and its end.
  let hasOther = false;
  let first = 0;
  let signs = 0;
  for (let at = 0; at <= line.length; ) {
    const isEscaped = line[at] === "\\";
    if (isEscaped) at++;
    const char = line[at] ?? " ";
    if (char === "<") {
      if (signs++ === 0) first = at;
      at++;
      continue;
    }
    const variable = char === "$" && !isEscaped ? findVariable(line, at) : "";
    if (variable !== "") {
      at += variable.length;
      continue;
    }
    if (signs === 2 && !hasOther) return toExcerpt(line, first);
    // Three signs are a here-string.
    if (signs > 2) hasOther = true;
    signs = 0;
    if (!isEscaped && (char === '"' || char === "'")) {
      const end = findQuoteEnd(line, at);
      if (end === -1) return OPEN_QUOTE.exec(line.slice(at))?.[0].trim();
      at = end + 1;
      continue;
    }
    if (/\s/.test(char)) hasOther = false;
    else if (!/\d/.test(char)) hasOther = true;
    at++;
  }
  return undefined;
};

/** Two signs, between which some versions of the engine leave out an escape character or an empty variable. */
const PAIR = /<(?:[\\$][^<]*)?</;
/** Engines read quotes, spaces and further variables inside of braces differently. */
const ODD_VARIABLE = /\$\{(?![\w.:/@+=,%#*?^!-]*\})/;
/** A variable that can be empty, or one that the engine leaves as it is. */
const VARIABLE = /\$(?:\{[\w.:/@+=,%#*?^!-]*\}|[\p{L}\p{N}_]+|[@*#?$!-])/uy;
/** What could be one inside of a quote that is not closed. */
const OPEN_QUOTE = /(?:^|[\s'"\\])\d*<<(?!<).{0,20}/;

const findVariable = (line: string, at: number): string => {
  VARIABLE.lastIndex = at;
  return VARIABLE.exec(line)?.[0] ?? "";
};

/** Returns the position of the quote that closes the one at `at`, or -1. */
const findQuoteEnd = (line: string, at: number): number => {
  const quote = line[at];
  for (let next = at + 1; next < line.length; next++) {
    if (line[next] === quote) return next;
    if (quote === '"' && line[next] === "\\") next++;
  }
  return -1;
};

const toExcerpt = (line: string, at: number): string => line.slice(at, at + 20).trim();
