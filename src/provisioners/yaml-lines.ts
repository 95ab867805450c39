// Finds the lines of the values in a YAML text, for error messages. Bun's parser does not report positions, so this module reads the block
// structure (mappings, sequences, block scalars, whole flow values) and records the first line of each path. For text that it does not
// understand, the line is less precise. Also finds duplicate keys, which the parser accepts.

export type YamlLines = {
  /** Returns the 1-based line of this JSON pointer, or of its nearest ancestor with a known line. */
  lineOf(pointer: string): number;
  /** Keys that occur again in a mapping, with the line of the later occurrence. */
  readonly duplicates: readonly { pointer: string; line: number }[];
};

type Container =
  | { kind: "map"; indent: number; pointer: string; key: string; keys: Set<string> }
  | { kind: "seq"; indent: number; pointer: string; index: number };

/** A quoted key, or a plain one up to the first colon at its end. Its time is linear: nothing in it matches what follows it. */
const KEY =
  /^(?:("(?:[^"\\]|\\.)*"|'(?:[^']|'')*')\s*|((?:[^\s#'"[\]{},|>%@`:]|:(?=\S))(?:[^#:]|:(?=\S))*)):(?:\s+([\s\S]*))?$/;
const BLOCK_TEXT = /^(?:[&!]\S*\s+)*[|>][-+0-9]*(?:\s+#.*)?$/;

export const mapYamlLines = (text: string): YamlLines => {
  const reader = new StructureReader();
  text.split(/\r?\n/).forEach((line, index) => {
    reader.readLine(line, index + 1);
  });
  return {
    lineOf: (pointer) => {
      for (let rest = pointer; rest !== ""; rest = rest.slice(0, rest.lastIndexOf("/"))) {
        const line = reader.lines.get(rest);
        if (line !== undefined) return line;
      }
      return 1;
    },
    duplicates: reader.duplicates,
  };
};

class StructureReader {
  readonly lines = new Map<string, number>();
  readonly duplicates: { pointer: string; line: number }[] = [];
  readonly #stack: Container[] = [];
  /** The indentation of the current block scalar, to which all deeper lines belong. Undefined outside of a block scalar. */
  #textIndent: number | undefined;
  #flow = { depth: 0, quote: "" };

  readLine(lineText: string, lineNumber: number): void {
    const content = lineText.trimStart();
    const indent = lineText.length - content.length;
    if (this.#textIndent !== undefined) {
      if (content === "" || indent > this.#textIndent) return;
      this.#textIndent = undefined;
    }
    if (this.#flow.depth > 0 || this.#flow.quote !== "") {
      this.#readFlow(content);
      return;
    }
    if (content === "" || content.startsWith("#") || /^(?:---|\.\.\.|%)/.test(lineText)) return;
    this.#addLine(content.trimEnd(), indent, lineNumber);
  }

  #addLine(content: string, column: number, line: number): void {
    const match = KEY.exec(content);
    if (content === "-" || content.startsWith("- ")) this.#addItem(content, column, line);
    else if (match) this.#addEntry(match[2]?.trimEnd() ?? unquote(match[1] ?? ""), match[3] ?? "", column, line);
    else this.#addValue(content, this.#stack.at(-1)?.indent ?? -1);
  }

  #addItem(content: string, column: number, line: number): void {
    this.#leaveTo(column);
    let top = this.#stack.at(-1);
    if (top?.kind !== "seq" || top.indent !== column) {
      top = { kind: "seq", indent: column, pointer: findPointer(top), index: -1 };
      this.#stack.push(top);
    }
    top.index += 1;
    this.#recordLine(`${top.pointer}/${top.index}`, line);
    const rest = content.slice(1).trimStart();
    if (rest === "" || rest.startsWith("#")) return;
    if (BLOCK_TEXT.test(rest)) this.#textIndent = column;
    else this.#addLine(rest, column + content.length - rest.length, line);
  }

  #addEntry(key: string, value: string, column: number, line: number): void {
    this.#leaveTo(column);
    // A sequence may have the same indentation as its key. The next key ends the sequence.
    if (this.#stack.at(-1)?.kind === "seq" && this.#stack.at(-1)?.indent === column) this.#stack.pop();
    let top = this.#stack.at(-1);
    if (top?.kind !== "map" || top.indent !== column) {
      top = { kind: "map", indent: column, pointer: findPointer(top), key: "", keys: new Set() };
      this.#stack.push(top);
    }
    top.key = key;
    const pointer = findPointer(top);
    if (top.keys.has(key) && key !== "<<") this.duplicates.push({ pointer, line });
    top.keys.add(key);
    this.#recordLine(pointer, line);
    this.#addValue(value, column);
  }

  #addValue(value: string, indent: number): void {
    if (BLOCK_TEXT.test(value)) this.#textIndent = indent;
    else if (/^(?:[&!]\S*\s+)*["'[{]/.test(value)) this.#readFlow(value);
  }

  /** Tracks open brackets and quotes, which make the following lines part of the same value. */
  #readFlow(text: string): void {
    const flow = this.#flow;
    for (let i = 0; i < text.length; i++) {
      const char = text[i] as string;
      if (flow.quote !== "") {
        if (char === "\\" && flow.quote === '"') i++;
        else if (char === flow.quote) flow.quote = "";
      } else if (char === '"' || char === "'") {
        if (i === 0 || /[\s[{,:]/.test(text[i - 1] as string)) flow.quote = char;
      } else if (char === "[" || char === "{") flow.depth++;
      else if (char === "]" || char === "}") flow.depth = Math.max(0, flow.depth - 1);
      else if (char === "#" && (i === 0 || text[i - 1] === " ")) return;
    }
  }

  #leaveTo(column: number): void {
    while ((this.#stack.at(-1)?.indent ?? -1) > column) this.#stack.pop();
  }

  #recordLine(pointer: string, line: number): void {
    if (!this.lines.has(pointer)) this.lines.set(pointer, line);
  }
}

const findPointer = (top: Container | undefined): string => {
  if (!top) return "";
  return `${top.pointer}/${top.kind === "map" ? escapeKey(top.key) : top.index}`;
};

const escapeKey = (key: string): string => key.replaceAll("~", "~0").replaceAll("/", "~1");

const unquote = (key: string): string =>
  key.startsWith('"') || key.startsWith("'") ? key.slice(1, -1).replaceAll("''", "'") : key;
