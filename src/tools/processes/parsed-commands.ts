// Lists the simple commands in a shell text, for display: uses a real grammar, so that quotes, here-documents and substitutions are parsed
// like in a shell (facts/chats 3.8). Not used for permissions: see permission.ts. Pure.
import { type Command, forEachChild, parse, type SyntaxNode, type Word } from "unbash";

/** Longer texts are not parsed, nor those with more here-documents, since the worst case is quadratic. */
const MAX_LENGTH = 6_000;
const MAX_HERE_DOCUMENTS = 64;
const MAX_COMMANDS = 100;
const MAX_WORD_LENGTH = 200;

/** Parts of a word whose value is known before it runs. */
const CONSTANT_PARTS: ReadonlySet<string> = new Set(["Literal", "SingleQuoted", "AnsiCQuoted"]);
const WRAPPER_PARTS: ReadonlySet<string> = new Set(["DoubleQuoted", "LocaleString"]);

/**
 * Returns [program] or [program, first argument that is not a flag] of each simple command in order; programs without their folders.
 * Commands whose program is known only at run time are omitted. Undefined for invalid shell text (rule TO-19).
 */
export const parseCommands = (command: unknown): string[][] | undefined => {
  const found = listSimpleCommands(command).flatMap(({ node: { name, args } }) => {
    if (!name || !isConstant(name)) return [];
    const program = name.value.split("/").at(-1) ?? "";
    const first = args.flatMap((one) => (one.type === "Word" && !one.text.startsWith("-") ? [one] : []))[0];
    const argument = first && (isConstant(first) ? first.value : first.text);
    if (program === "") return [];
    return [[program, ...(argument ? [argument] : [])].map((one) => one.slice(0, MAX_WORD_LENGTH))];
  });
  return found.length > 0 ? found.slice(0, MAX_COMMANDS) : undefined;
};

/** Returns the text of each simple command in order, including those in substitutions. Empty for invalid shell text. */
export const listCommandTexts = (command: string): string[] =>
  listSimpleCommands(command)
    .map(({ node: { pos, end }, source }) => source.slice(pos, end).trim())
    .filter((text) => text !== "")
    .slice(0, MAX_COMMANDS);

/** True for a text that would take too long to parse. */
export const isTooCostly = (command: string): boolean =>
  command.length > MAX_LENGTH || command.split("<<").length - 1 > MAX_HERE_DOCUMENTS;

/** `source`: the text to which the node's positions refer; nested backticks have a separate text. */
type FoundCommand = { readonly node: Command; readonly source: string };

/**
 * Returns each simple command in order, including those in substitutions. Empty for invalid shell text. `skipped`: types of nodes whose
 * commands are left out.
 */
export const listSimpleCommands = (command: unknown, skipped?: ReadonlySet<string>): FoundCommand[] =>
  findSimpleCommands(command, skipped) ?? [];

/** Like `listSimpleCommands`, but undefined for invalid shell text. */
export const findSimpleCommands = (command: unknown, skipped?: ReadonlySet<string>): FoundCommand[] | undefined => {
  if (typeof command !== "string" || isTooCostly(command)) return undefined;
  const script = parse(command);
  if (script.errors && script.errors.length > 0) return undefined;
  const found: FoundCommand[] = [];
  const walk = (node: SyntaxNode, around: string): void => {
    const source = node.type === "Script" ? (node.source ?? around) : around;
    if (skipped?.has(node.type)) return;
    if (node.type === "Command") found.push({ node, source });
    forEachChild(node, (child) => walk(child, source));
  };
  walk(script, command);
  return found;
};

type WordPart = NonNullable<Word["parts"]>[number];

/** True for a word whose value is the same whenever it runs. */
export const isConstant = ({ parts }: { readonly parts?: readonly WordPart[] | undefined }): boolean =>
  (parts ?? []).every(
    (part) =>
      CONSTANT_PARTS.has(part.type) ||
      (WRAPPER_PARTS.has(part.type) && isConstant(part as { parts?: readonly WordPart[] })),
  );
