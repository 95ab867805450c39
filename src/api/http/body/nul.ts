// NUL in the texts of a request. PostgreSQL stores none, and it ends a text for half of the programs that may read it: people are told,
// on every store. What agents and models say is cleaned where it is taken in.
import { invalid } from "#base/errors.ts";

const WORDS = "must not contain NUL";

/** Throws 400 that names the first text, or name of a member, that holds NUL. `text`: the JSON that the value was read from. */
export const refuseNul = (text: string, value: unknown): void => {
  if (!text.includes("\\u0000")) return;
  const left: { readonly place: string; readonly value: unknown }[] = [{ place: "", value }];
  // No recursion: a body may be as deep as its sender likes.
  for (let one = left.shift(); one; one = left.shift()) {
    const { place, value: found } = one;
    if (typeof found === "string" && found.includes("\0")) throw refusal(place);
    if (typeof found !== "object" || found === null) continue;
    for (const [name, member] of Object.entries(found)) {
      if (name.includes("\0")) throw refusal(place);
      left.push({ place: place === "" ? name : `${place}.${name}`, value: member });
    }
  }
};

/** Throws 400 where the path or the query of a request holds NUL. */
export const refuseNulIn = (url: string): void => {
  if (url.includes("%00")) throw invalid("Validation failed.", [{ field: "url", detail: WORDS }]);
};

const refusal = (place: string) => invalid("Validation failed.", [{ field: place.slice(0, 200), detail: WORDS }]);
