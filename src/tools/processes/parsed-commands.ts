// The simple commands in a shell text, for people and programs that want to know at a glance what was run: by a real grammar, so that
// quotes, here-documents and substitutions are what they are to a shell (facts/chats 3.8). Decides nothing: see permission.ts. Pure.
import { forEachChild, parse, type SyntaxNode, type Word } from "unbash";

/** Longer texts are not looked into, since the worst ones cost the square of their length; more commands are not listed. */
const LONGEST = 6_000;
const MOST = 100;
const LONGEST_WORD = 200;

/** What a word may be made of when it is known before it is run. */
const PLAIN: ReadonlySet<string> = new Set(["Literal", "SingleQuoted", "AnsiCQuoted"]);
const AROUND: ReadonlySet<string> = new Set(["DoubleQuoted", "LocaleString"]);

/**
 * [program] or [program, first argument that is no flag] of each simple command, in the order of the text; the program without its
 * folders. Commands whose program is only known when they run are left out. Undefined for what is no shell text (rule TO-19).
 */
export const parsedCommands = (command: unknown): string[][] | undefined => {
  if (typeof command !== "string" || command.length > LONGEST) return undefined;
  const script = parse(command);
  if (script.errors && script.errors.length > 0) return undefined;
  const found: string[][] = [];
  const walk = (node: SyntaxNode): void => {
    if (found.length >= MOST) return;
    if (node.type === "Command" && node.name && isKnown(node.name)) {
      const program = node.name.value.split("/").at(-1) ?? "";
      const first = node.args.flatMap((one) => (one.type === "Word" && !one.text.startsWith("-") ? [one] : []))[0];
      const argument = first && (isKnown(first) ? first.value : first.text);
      if (program !== "")
        found.push([program, ...(argument ? [argument] : [])].map((one) => one.slice(0, LONGEST_WORD)));
    }
    forEachChild(node, walk);
  };
  walk(script);
  return found.length > 0 ? found : undefined;
};

type Part = NonNullable<Word["parts"]>[number];

/** True for a word that is the same whenever it is run. */
export const isKnown = ({ parts }: { readonly parts?: readonly Part[] | undefined }): boolean =>
  (parts ?? []).every(
    (part) => PLAIN.has(part.type) || (AROUND.has(part.type) && isKnown(part as { parts?: readonly Part[] })),
  );
