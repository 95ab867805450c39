// The simple commands in a shell text, for people and programs that want to know at a glance what was run: by a real grammar, so that
// quotes, here-documents and substitutions are what they are to a shell (facts/chats 3.8). Decides nothing: see permission.ts. Pure.
import { type Command, forEachChild, parse, type SyntaxNode, type Word } from "unbash";

/** Longer texts are not looked into, since the worst ones cost the square of their length; more commands are not listed. */
const LONGEST = 6_000;
const MOST = 100;
const MAX_WORD_LENGTH = 200;

/** What a word may be made of when it is known before it is run. */
const PLAIN: ReadonlySet<string> = new Set(["Literal", "SingleQuoted", "AnsiCQuoted"]);
const AROUND: ReadonlySet<string> = new Set(["DoubleQuoted", "LocaleString"]);

/**
 * [program] or [program, first argument that is no flag] of each simple command, in the order of the text; the program without its
 * folders. Commands whose program is only known when they run are left out. Undefined for what is no shell text (rule TO-19).
 */
export const parsedCommands = (command: unknown): string[][] | undefined => {
  const found = simpleCommands(command).flatMap(({ node: { name, args } }) => {
    if (!name || !isKnown(name)) return [];
    const program = name.value.split("/").at(-1) ?? "";
    const first = args.flatMap((one) => (one.type === "Word" && !one.text.startsWith("-") ? [one] : []))[0];
    const argument = first && (isKnown(first) ? first.value : first.text);
    if (program === "") return [];
    return [[program, ...(argument ? [argument] : [])].map((one) => one.slice(0, MAX_WORD_LENGTH))];
  });
  return found.length > 0 ? found.slice(0, MOST) : undefined;
};

/** The text of each simple command, those within substitutions too, in the order of the text. Empty for what is no shell text. */
export const commandTexts = (command: string): string[] =>
  simpleCommands(command)
    .map(({ node: { pos, end }, source }) => source.slice(pos, end).trim())
    .filter((text) => text !== "")
    .slice(0, MOST);

/** `source`: the text that the places of the node are counted in; backticks within backticks are a text of their own. */
type Found = { readonly node: Command; readonly source: string };

const simpleCommands = (command: unknown): Found[] => {
  if (typeof command !== "string" || command.length > LONGEST) return [];
  const script = parse(command);
  if (script.errors && script.errors.length > 0) return [];
  const found: Found[] = [];
  const walk = (node: SyntaxNode, around: string): void => {
    const source = node.type === "Script" ? (node.source ?? around) : around;
    if (node.type === "Command") found.push({ node, source });
    forEachChild(node, (child) => walk(child, source));
  };
  walk(script, command);
  return found;
};

type Part = NonNullable<Word["parts"]>[number];

/** True for a word that is the same whenever it is run. */
export const isKnown = ({ parts }: { readonly parts?: readonly Part[] | undefined }): boolean =>
  (parts ?? []).every(
    (part) => PLAIN.has(part.type) || (AROUND.has(part.type) && isKnown(part as { parts?: readonly Part[] })),
  );
