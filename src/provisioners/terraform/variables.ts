// Parses the variables that a template declares in its files, because `show -json` of a plan has no types, and there is no plan while a
// value is missing (facts/terraform 3.24). Also parses outputs and value files, and formats the file for `-var-file`. Pure.
import { tryParseJson } from "#base/json/read.ts";

export type DeclaredVariable = {
  readonly name: string;
  readonly description: string;
  /** The type as written, such as `list(string)`; empty if the variable has none. */
  readonly type: string;
  /** The value of a default that is a string; any other default as written. Undefined if the variable has no default. */
  readonly default: string | undefined;
  readonly sensitive: boolean;
};

export type TemplateFile = { readonly name: string; readonly text: string };

/** Returns variables in the order of file names and lines. Files that cannot be parsed yield no variables. */
export const parseDeclaredVariables = (files: readonly TemplateFile[]): DeclaredVariable[] =>
  files
    .toSorted((a, b) => (a.name < b.name ? -1 : 1))
    .flatMap(({ name, text }) => (name.endsWith(".json") ? parseJsonVariables(text) : parseHclVariables(text)));

/** Returns the names of variables set in value files (`terraform.tfvars`, `*.auto.tfvars`). Users are not asked for them. */
export const parseAssignedNames = (files: readonly TemplateFile[]): Set<string> =>
  new Set(
    files.flatMap(({ name, text }) =>
      name.endsWith(".json")
        ? Object.keys(parseObject(text))
        : findAttributes(text, 0, text.length).map(({ key }) => key),
    ),
  );

/** Returns true for files from which Terraform reads values automatically. */
export const isValuesFile = (name: string): boolean =>
  /^terraform\.tfvars(\.json)?$|\.auto\.tfvars(\.json)?$/.test(name);
export const isTemplateFile = (name: string): boolean => /\.(?:tf|tofu)(?:\.json)?$/.test(name);

const parseObject = (json: string): Record<string, unknown> => {
  const value = tryParseJson(json);
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : {};
};

const parseJsonVariables = (json: string): DeclaredVariable[] => {
  const blocks = [parseObject(json).variable].flat() as unknown[];
  return blocks.flatMap((block) =>
    Object.entries((block ?? {}) as Record<string, unknown>).flatMap(([name, bodies]) => {
      const body = ([bodies].flat()[0] ?? {}) as Record<string, unknown>;
      return {
        name,
        description: typeof body.description === "string" ? body.description : "",
        type: typeof body.type === "string" ? body.type : "",
        default: typeof body.default === "string" ? body.default : JSON.stringify(body.default),
        sensitive: body.sensitive === true,
      };
    }),
  );
};

/** Returns the names of the outputs that files declare. */
export const listDeclaredOutputs = (files: readonly TemplateFile[]): Set<string> =>
  new Set(
    files.flatMap(({ name, text }) =>
      name.endsWith(".json")
        ? [parseObject(text).output].flat().flatMap((block) => Object.keys(block ?? {}))
        : findBlocks(text, "output").map((one) => one.name),
    ),
  );

const parseHclVariables = (text: string): DeclaredVariable[] =>
  findBlocks(text, "variable").map(({ name, from, to }) => {
    const attributes = new Map(findAttributes(text, from, to).map(({ key, value }) => [key, value]));
    const defaultValue = attributes.get("default");
    const type = attributes.get("type") ?? "";
    return {
      name,
      description: parseString(attributes.get("description") ?? "") ?? "",
      type: parseString(type) ?? type.replace(/\s+/g, " "),
      default: defaultValue === "null" ? "" : (parseString(defaultValue ?? "") ?? defaultValue),
      sensitive: attributes.get("sensitive") === "true",
    };
  });

const BLOCK_HEADS = {
  variable: /^variable\s+"?([A-Za-z_][\w-]*)"?\s*\{/,
  output: /^output\s+"?([A-Za-z_][\w-]*)"?\s*\{/,
} as const;

/** Returns the name and the range of the body of each top-level block of this kind, such as `variable "x" {`. */
const findBlocks = (text: string, kind: keyof typeof BLOCK_HEADS): { name: string; from: number; to: number }[] => {
  const found: { name: string; from: number; to: number }[] = [];
  for (let at = 0; at < text.length; ) {
    const [head, name] = BLOCK_HEADS[kind].exec(text.slice(at, at + 512)) ?? [];
    if (head !== undefined && name !== undefined) {
      const from = at + head.length;
      const to = findClosing(text, from);
      found.push({ name, from, to });
      at = to + 1;
    } else at = skipToken(text, at);
  }
  return found;
};

/** Returns the `key = expression` pairs in the range, without those in nested blocks. */
const findAttributes = (text: string, from: number, to: number): { key: string; value: string }[] => {
  const found: { key: string; value: string }[] = [];
  for (let at = from; at < to; ) {
    const [head, key] = /^([A-Za-z_][\w-]*)\s*=(?!=)[ \t]*/.exec(text.slice(at, at + 256)) ?? [];
    if (head === undefined || key === undefined) {
      at = skipToken(text, at);
      continue;
    }
    const start = at + head.length;
    at = start;
    let end = start;
    while (at < to && text[at] !== "\n" && text[at] !== "#" && !text.startsWith("//", at)) {
      at = skipToken(text, at);
      end = at;
    }
    found.push({ key, value: text.slice(start, Math.min(end, to)).trim() });
  }
  return found;
};

/** Returns the position after the token at `at`: a comment, a string, a heredoc, a bracket with its content, a word, or one character. */
const skipToken = (text: string, at: number): number => {
  const rest = text.slice(at, at + 256);
  if (rest.startsWith("#") || rest.startsWith("//")) return findLineEnd(text, at);
  if (rest.startsWith("/*")) return findAfter(text, "*/", at + 2);
  if (rest.startsWith('"')) return skipString(text, at + 1);
  const [heredoc, mark] = /^<<-?([A-Za-z_]\w*)/.exec(rest) ?? [];
  if (heredoc !== undefined) return skipHeredoc(text, at, mark as string);
  if (rest.startsWith("{") || rest.startsWith("[") || rest.startsWith("(")) return findClosing(text, at + 1) + 1;
  // Skips a whole word, so that `variable` is not found inside `my_variable`.
  return at + (/^[\w-]+/.exec(rest)?.[0].length ?? 1);
};

const findLineEnd = (text: string, at: number): number => {
  const end = text.indexOf("\n", at);
  return end < 0 ? text.length : end;
};

const findAfter = (text: string, terminator: string, at: number): number => {
  const position = text.indexOf(terminator, at);
  return position < 0 ? text.length : position + terminator.length;
};

/** Returns the position of the closing bracket for the opening one just before `at`. */
const findClosing = (text: string, at: number): number => {
  while (at < text.length && !"}])".includes(text[at] as string)) at = skipToken(text, at);
  return at;
};

const skipString = (text: string, at: number): number => {
  while (at < text.length && text[at] !== '"') {
    if (text[at] === "\\") at += 2;
    else if (text.startsWith("${", at) || text.startsWith("%{", at)) {
      // `$${` is a literal `${`.
      if (text[at - 1] === text[at]) at += 2;
      else at = findClosing(text, at + 2) + 1;
    } else at += 1;
  }
  return at + 1;
};

const skipHeredoc = (text: string, at: number, mark: string): number => {
  for (let line = findLineEnd(text, at) + 1; line < text.length; line = findLineEnd(text, line) + 1) {
    if (text.slice(line, findLineEnd(text, line)).trim() === mark) return findLineEnd(text, line);
  }
  return text.length;
};

/** Returns the value of a string literal; undefined for any other expression. */
const parseString = (expression: string): string | undefined => {
  if (!/^"(?:[^"\\]|\\.)*"$/s.test(expression)) return undefined;
  return expression
    .slice(1, -1)
    .replace(/\\([nrt"\\])/g, (_, one: string) => ({ n: "\n", r: "\r", t: "\t" })[one] ?? one)
    .replaceAll("$${", "${")
    .replaceAll("%%{", "%{");
};

/** Returns the file for `-var-file` (facts/terraform 2.6). Strings are quoted. Other values are in parentheses. */
export const formatVariablesFile = (
  declared: readonly { readonly name: string; readonly type: string }[],
  values: Readonly<Record<string, string>>,
): string =>
  declared
    .filter(({ name }) => Object.hasOwn(values, name))
    .map(({ name, type }) => {
      const value = values[name] as string;
      // The parentheses prevent a value from ending its line and setting another variable.
      return `${name} = ${type === "" || type === "string" || type === "any" ? quoteHcl(value) : `(${value})`}\n`;
    })
    .join("");

const ESCAPES: Readonly<Record<string, string>> = { "\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t" };

const quoteHcl = (value: string): string =>
  `"${value
    // biome-ignore lint/suspicious/noControlCharactersInRegex: HCL requires these to be escaped
    .replace(/[\\"\u0000-\u001f]/g, (one) => ESCAPES[one] ?? `\\u${one.charCodeAt(0).toString(16).padStart(4, "0")}`)
    .replace(/\$(?=\{)/g, "$$$$")
    .replace(/%(?=\{)/g, "%%")}"`;
