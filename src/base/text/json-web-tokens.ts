// Replaces JSON Web Tokens in text in linear time. A single pattern for them would read a long run of letters once for each `eyJ` in it.

/** Letters, digits and hyphens from their beginning, with at least one more part after a dot. */
const DOTTED_RUN = /(?<![\w-])[\w-]{11,}(?:\.[\w-]*)+/g;
const TOKEN_START = /\beyJ[\w-]{8}/;

/** Returns the text with `replacement` in place of each token, which begins with `eyJ`, the Base64 of `{"`. */
export const replaceJsonWebTokens = (text: string, replacement: string): string =>
  text.replace(DOTTED_RUN, (run) => {
    const start = run.search(TOKEN_START);
    return start < 0 ? run : run.slice(0, start) + replacement;
  });
