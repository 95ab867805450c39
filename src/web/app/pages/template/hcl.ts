// A syntax mode for Terraform files: comments, strings with interpolation, numbers, names of blocks.
import type { StreamParser } from "@codemirror/language";

type State = {
  /** A construct that continues over several lines: a comment, or a heredoc until this word. */
  construct: "" | "comment" | "heredoc";
  endWord: string;
};

const BLOCKS =
  /^(?:terraform|provider|resource|data|variable|output|locals|module|moved|import|check|dynamic|lifecycle|for_each|for|in|if)\b/;

export const hcl: StreamParser<State> = {
  startState: () => ({ construct: "", endWord: "" }),
  languageData: { commentTokens: { line: "#" } },
  token: (stream, state) => {
    if (state.construct === "comment") {
      if (stream.skipTo("*/")) {
        stream.match("*/");
        state.construct = "";
      } else stream.skipToEnd();
      return "comment";
    }
    if (state.construct === "heredoc") {
      if (stream.sol() && stream.string.trim() === state.endWord) state.construct = "";
      stream.skipToEnd();
      return "string";
    }
    if (stream.eatSpace()) return null;
    if (stream.match("#") || stream.match("//")) {
      stream.skipToEnd();
      return "comment";
    }
    if (stream.match("/*")) {
      state.construct = "comment";
      return "comment";
    }
    const heredoc = stream.match(/^<<-?(\w+)/);
    if (Array.isArray(heredoc)) {
      state.construct = "heredoc";
      state.endWord = heredoc[1] ?? "";
      return "string";
    }
    if (stream.match(/^"(?:[^"\\]|\\.)*"?/)) return "string";
    if (stream.match(/^\d[\d.]*/)) return "number";
    if (stream.match(/^(?:true|false|null)\b/)) return "atom";
    if (stream.match(BLOCKS)) return "keyword";
    if (stream.match(/^[A-Za-z_][\w-]*(?=\s*=[^=])/)) return "propertyName";
    if (stream.match(/^[A-Za-z_][\w-]*/)) return "variableName";
    stream.next();
    return null;
  },
};
