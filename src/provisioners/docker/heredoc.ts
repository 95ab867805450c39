// Finds here-documents in a RUN, COPY or ADD of a Dockerfile. Versions of the engine disagree on where a here-document begins, and it hides
// the following lines from the builder. So every `<<` that any version could read as the beginning of a here-document counts.

/** Returns the first characters of the first possible here-document in the line; undefined if no engine finds one. */
export const findHeredoc = (line: string): string | undefined => {
  const match = TWO_SIGNS.exec(line);
  if (!match) return undefined;
  if (ODD_VARIABLE.test(line)) return toExcerpt(line, match.index);
  // The engine reads words as a shell does: a here-document is a word of optional digits, `<<` and the end marker.
  let hasOtherText = false;
  let first = 0;
  let signCount = 0;
  for (let offset = 0; offset <= line.length; ) {
    const isEscaped = line[offset] === "\\";
    if (isEscaped) offset++;
    const char = line[offset] ?? " ";
    if (char === "<") {
      if (signCount++ === 0) first = offset;
      offset++;
      continue;
    }
    const variable = char === "$" && !isEscaped ? findVariable(line, offset) : "";
    if (variable !== "") {
      offset += variable.length;
      continue;
    }
    if (signCount === 2 && !hasOtherText) return toExcerpt(line, first);
    // `<<<` begins a here-string.
    if (signCount > 2) hasOtherText = true;
    signCount = 0;
    if (!isEscaped && (char === '"' || char === "'")) {
      const end = findQuoteEnd(line, offset);
      if (end === -1) return OPEN_QUOTE.exec(line.slice(offset))?.[0].trim();
      offset = end + 1;
      continue;
    }
    if (/\s/.test(char)) hasOtherText = false;
    else if (!/\d/.test(char)) hasOtherText = true;
    offset++;
  }
  return undefined;
};

/** `<<`, also with text between the two signs: some versions of the engine remove an escape character or an empty variable there. */
const TWO_SIGNS = /<(?:[\\$][^<]*)?</;
/** Engines read quotes, spaces and further variables inside of braces differently. */
const ODD_VARIABLE = /\$\{(?![\w.:/@+=,%#*?^!-]*\})/;
/** A variable that may be empty, or that the engine does not replace. */
const VARIABLE = /\$(?:\{[\w.:/@+=,%#*?^!-]*\}|[\p{L}\p{N}_]+|[@*#?$!-])/uy;
/** A possible here-document inside of a quote that is not closed. */
const OPEN_QUOTE = /(?:^|[\s'"\\])\d*<<(?!<).{0,20}/;

const findVariable = (line: string, offset: number): string => {
  VARIABLE.lastIndex = offset;
  return VARIABLE.exec(line)?.[0] ?? "";
};

/** Returns the position of the quote that closes the quote at `offset`, or -1. */
const findQuoteEnd = (line: string, offset: number): number => {
  const quote = line[offset];
  for (let next = offset + 1; next < line.length; next++) {
    if (line[next] === quote) return next;
    if (quote === '"' && line[next] === "\\") next++;
  }
  return -1;
};

const toExcerpt = (line: string, offset: number): string => line.slice(offset, offset + 20).trim();
