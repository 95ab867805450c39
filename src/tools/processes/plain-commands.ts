// Parses shell text for permission checks: the words of each simple command, if every word is literal. Anything that depends on the shell's
// state (variables, substitutions, globs, redirections, assignments, keywords) is deliberately not understood. Used by permission.ts; it
// never runs anything.

const PLAIN_CHARACTER = /[A-Za-z0-9_@%+=:,./-]/;
const KEYWORDS = new Set(
  "if then else elif fi for while until do done case esac in function select time coproc".split(" "),
);

/** Each command is compared with every rule, which blocks the event loop. */
const MAX_COMMANDS = 200;

/** One simple command: the program and its arguments as the shell would pass them. */
export type CommandWords = readonly string[];

/** Returns all simple commands of a list or pipeline in order; undefined if anything in it is not plain, and for more than 200. */
export const parsePlainCommands = (text: string): readonly CommandWords[] | undefined => {
  const commands: string[][] = [[]];
  let word: string | undefined;
  const endWord = (): void => {
    if (word !== undefined) commands.at(-1)?.push(word);
    word = undefined;
  };
  for (let at = 0; at < text.length; ) {
    const char = text[at] as string;
    if (char === " " || char === "\t") {
      endWord();
      at += 1;
    } else if (char === "'" || char === '"') {
      const end = text.indexOf(char, at + 1);
      const inside = text.slice(at + 1, end);
      if (end < 0 || (char === '"' && /[$`\\!]/.test(inside)) || CONTROL_CHARACTERS.test(inside)) return undefined;
      word = (word ?? "") + inside;
      at = end + 1;
    } else if (PLAIN_CHARACTER.test(char)) {
      word = (word ?? "") + char;
      at += 1;
    } else {
      const operator = /^(?:&&|\|\||[;|\n])/.exec(text.slice(at, at + 2))?.[0];
      if (operator === undefined || text.startsWith("|&", at)) return undefined;
      endWord();
      if (commands.length >= MAX_COMMANDS) return undefined;
      commands.push([]);
      at += operator.length;
    }
  }
  endWord();
  const found = commands.filter((words) => words.length > 0);
  return found.length > 0 && found.every(isPlain) ? found : undefined;
};

/** Control characters except tabs and line breaks. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
const CONTROL_CHARACTERS = /[\u0000-\u0008\u000b-\u001f\u007f]/;

const isPlain = ([program = ""]: CommandWords): boolean =>
  program !== "" && !program.includes("=") && !KEYWORDS.has(program);
