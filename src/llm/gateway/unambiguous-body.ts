// Checks that every parser reads a body in the same way. The gateway validates and prices what its own parser reads; a provider's parser
// may use the first of two members with one name, or accept `Model` for `model`. Pure.

import type { Dialect } from "./endpoint.ts";
import { isObject, type Json } from "./json.ts";
import { findReferences, iterateMeaningfulObjects } from "./stored.ts";

/** Members that determine what a call may do and what it costs. */
const DECISIVE_NAMES = [
  ...["model", "stream", "stream_options", "include_usage", "background", "n"],
  ...["max_tokens", "max_completion_tokens", "max_output_tokens"],
  ...["generationConfig", "generation_config", "maxOutputTokens", "max_output_tokens"],
  ...["candidateCount", "candidate_count"],
];

/** Folds a name like case-insensitive parsers, for which the long s and the Kelvin sign equal letters. */
export const normalizeName = (name: string): string => name.toUpperCase().toLowerCase();

const CHAR_CODE = {
  quote: 34,
  comma: 44,
  colon: 58,
  backslash: 92,
  list: 91,
  listEnd: 93,
  object: 123,
  objectEnd: 125,
} as const;

/** Returns the first name that an object contains twice, in valid JSON text; undefined if none exists. */
export const findRepeatedName = (text: string): string | undefined => {
  /** The names so far of each open object; undefined for an array. */
  const open: (Set<string> | undefined)[] = [];
  let isName = false;
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code === CHAR_CODE.quote) {
      const end = findTextEnd(text, at);
      if (isName) {
        const names = open.at(-1);
        const written = text.slice(at + 1, end);
        const name = written.includes("\\") ? (JSON.parse(`"${written}"`) as string) : written;
        if (names?.has(name)) return name;
        names?.add(name);
        isName = false;
      }
      at = end;
    } else if (code === CHAR_CODE.object) {
      open.push(new Set());
      isName = true;
    } else if (code === CHAR_CODE.list) {
      open.push(undefined);
      isName = false;
    } else if (code === CHAR_CODE.objectEnd || code === CHAR_CODE.listEnd) {
      open.pop();
      isName = false;
    } else if (code === CHAR_CODE.comma) isName = open.at(-1) !== undefined;
  }
  return undefined;
};

/** Maximum number of values, objects and members in a body: inspecting them blocks the event loop. */
const MAX_PARTS = 150_000;
const MAX_MEMBERS = 150_000;
const MAX_VALUES = 1_000_000;

/** True if a text has more values than are inspected. It may be invalid JSON. */
export const hasTooManyValues = (text: string): boolean => {
  let parts = 0;
  let members = 0;
  let commas = 0;
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code === CHAR_CODE.quote) at = findTextEnd(text, at);
    else if (code === CHAR_CODE.comma) commas += 1;
    else if (code === CHAR_CODE.colon) members += 1;
    else if (code === CHAR_CODE.object || code === CHAR_CODE.list) parts += 1;
    if (parts > MAX_PARTS || members > MAX_MEMBERS || commas > MAX_VALUES) return true;
  }
  return false;
};

/** Returns the position of a string's closing quote, or the end of the text if it has none. */
const findTextEnd = (text: string, begin: number): number => {
  let at = begin + 1;
  for (; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code === CHAR_CODE.quote) break;
    if (code === CHAR_CODE.backslash) at += 1;
  }
  return at;
};

const formatJson = (value: unknown): string => JSON.stringify(value) ?? "";

/** Members by the type that they must have: some parsers read `"true"` and 1 as true, and `"100000"` as a number. */
const BOOLEANS = ["stream", "background"] as const;
const NUMBERS = ["n", "max_tokens", "max_completion_tokens", "max_output_tokens"] as const;
const OBJECTS = ["stream_options", "generationConfig", "generation_config"] as const;
const GOOGLE_NUMBERS = ["maxOutputTokens", "max_output_tokens", "candidateCount", "candidate_count"] as const;

/** Returns a sentence about a decisive member with the wrong type; undefined if all have the right type. */
export const findWrongType = (body: Json): string | undefined => {
  const describeWrongType = (
    object: Json,
    names: readonly string[],
    type: string,
    description: string,
  ): string | undefined => {
    const name = names.find((one) => object[one] !== undefined && object[one] !== null && typeof object[one] !== type);
    return name && `\`${name}\` must be ${description}, not ${formatJson(object[name]).slice(0, 100)}.`;
  };
  const config = body.generationConfig ?? body.generation_config;
  const options = body.stream_options;
  return (
    describeWrongType(body, BOOLEANS, "boolean", "true or false") ??
    describeWrongType(body, NUMBERS, "number", "a number") ??
    describeWrongType(body, OBJECTS, "object", "an object") ??
    (isObject(options) ? describeWrongType(options, ["include_usage"], "boolean", "true or false") : undefined) ??
    (isObject(config) ? describeWrongType(config, GOOGLE_NUMBERS, "number", "a number") : undefined)
  );
};

/** Returns two members of one object that mean the same to Google, such as `maxOutputTokens` and `max_output_tokens`. */
const findTwice = (part: Json): readonly [string, string] | undefined => {
  for (const written in part) {
    if (!written.includes("_")) continue;
    const joined = written.replace(/_([a-z0-9])/g, (_, letter: string) => letter.toUpperCase());
    if (joined !== written && Object.hasOwn(part, joined)) return [written, joined];
  }
  return undefined;
};

/** Returns two members of a body for Google that mean the same, if any. */
export const findMemberTwice = (body: Json): readonly [string, string] | undefined => {
  for (const part of iterateMeaningfulObjects(body)) {
    const duplicate = findTwice(part);
    if (duplicate) return duplicate;
  }
  return undefined;
};

/** Returns a model in a body for Google that is not the one of the path, which decides, if any. */
export const findOtherModel = (body: Json, model: string): string | undefined => {
  const requests = Array.isArray(body.requests) ? body.requests : [];
  const inner = [body, body.generateContentRequest, body.generate_content_request, ...requests].filter(isObject);
  const other = inner.map((one) => one.model).find((one) => one !== undefined && one !== null && !isSame(one, model));
  return other === undefined ? undefined : formatJson(other);
};

const isSame = (named: unknown, model: string): boolean => named === model || named === `models/${model}`;

/** Returns a member that is a different spelling of one that the gateway inspects, together with that one; undefined if none exists. */
export const findMisspelledName = (
  dialect: Dialect,
  body: Json,
): readonly [written: string, meant: string] | undefined => {
  const known = new Map([...DECISIVE_NAMES, ...findReferences(dialect)].map((name) => [normalizeName(name), name]));
  /** Names that need no further check. */
  const acceptedNames = new Set([...DECISIVE_NAMES, ...findReferences(dialect)]);
  for (const part of iterateMeaningfulObjects(body)) {
    for (const written in part) {
      if (acceptedNames.has(written)) continue;
      const meant = known.get(normalizeName(written));
      if (meant !== undefined) return [written, meant];
      acceptedNames.add(written);
    }
  }
  return undefined;
};
