// Whether a body means the same to every parser. What the gateway checks and what it prices is what its own parser reads; a provider's parser
// may take the first of two members of one name, or take `Model` for `model`. Pure.

import type { Dialect } from "./endpoint.ts";
import type { Json } from "./json.ts";
import { meantObjects, referringNames } from "./stored.ts";

/** Members that decide what a call may do and what it costs. */
const DECIDING = [
  ...["model", "stream", "stream_options", "include_usage", "background", "n"],
  ...["max_tokens", "max_completion_tokens", "max_output_tokens"],
  ...["generationConfig", "generation_config", "maxOutputTokens", "max_output_tokens"],
  ...["candidateCount", "candidate_count"],
];

/** As parsers compare names that don't care for case; the long s and the sign for Kelvin are letters to them. */
const fold = (name: string): string => name.toUpperCase().toLowerCase();

const END = { quote: 34, comma: 44, backslash: 92, list: 91, listEnd: 93, object: 123, objectEnd: 125 } as const;

/** Returns the first name that an object has twice, in the text of valid JSON; undefined: none has. */
export const findRepeatedName = (text: string): string | undefined => {
  /** The names so far of each open object; undefined for a list. */
  const open: (Set<string> | undefined)[] = [];
  let isName = false;
  for (let at = 0; at < text.length; at += 1) {
    const sign = text.charCodeAt(at);
    if (sign === END.quote) {
      const end = endOfText(text, at);
      if (isName) {
        const names = open.at(-1);
        const name = JSON.parse(text.slice(at, end + 1)) as string;
        if (names?.has(name)) return name;
        names?.add(name);
        isName = false;
      }
      at = end;
    } else if (sign === END.object) {
      open.push(new Set());
      isName = true;
    } else if (sign === END.list) {
      open.push(undefined);
      isName = false;
    } else if (sign === END.objectEnd || sign === END.listEnd) {
      open.pop();
      isName = false;
    } else if (sign === END.comma) isName = open.at(-1) !== undefined;
  }
  return undefined;
};

/** Where the quotation mark that ends a text stands. */
const endOfText = (text: string, begin: number): number => {
  for (let at = begin; ; ) {
    at = text.indexOf('"', at + 1);
    let before = at - 1;
    while (text.charCodeAt(before) === END.backslash) before -= 1;
    if ((at - before) % 2 === 1) return at;
  }
};

/** Returns a member that is another spelling of one that the gateway looks at, and that one; undefined when no member is. */
export const findMisspelledName = (
  dialect: Dialect,
  body: Json,
): readonly [written: string, meant: string] | undefined => {
  const known = new Map([...DECIDING, ...referringNames(dialect)].map((name) => [fold(name), name]));
  const exact = new Set([...DECIDING, ...referringNames(dialect)]);
  for (const part of meantObjects(body)) {
    for (const written of Object.keys(part)) {
      const meant = exact.has(written) ? undefined : known.get(fold(written));
      if (meant !== undefined) return [written, meant];
    }
  }
  return undefined;
};
