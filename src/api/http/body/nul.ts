// Rejects NUL characters in the text of a request, on every kind of store: PostgreSQL cannot store them, and many programs treat NUL as the
// end of a text. Text from agents and models is cleaned where it arrives.
import { invalid } from "#base/errors.ts";

const WORDS = "must not contain NUL";

/** Throws 400 and names the first text or member name that contains NUL. `text`: the JSON the value was parsed from. */
export const refuseNul = (text: string, value: unknown): void => {
  if (!text.includes("\\u0000")) return;
  const pending: { readonly field: string; readonly value: unknown }[] = [{ field: "", value }];
  // Iterative, because a sender can nest a body arbitrarily deep.
  for (let one = pending.shift(); one; one = pending.shift()) {
    const { field, value: found } = one;
    if (typeof found === "string" && found.includes("\0")) throw refusal(field);
    if (typeof found !== "object" || found === null) continue;
    for (const [name, member] of Object.entries(found)) {
      if (name.includes("\0")) throw refusal(field);
      pending.push({ field: field === "" ? name : `${field}.${name}`, value: member });
    }
  }
};

/** Throws 400 when a request's path or query contains NUL. */
export const refuseNulIn = (url: string): void => {
  if (url.includes("%00")) throw invalid("Validation failed.", [{ field: "url", detail: WORDS }]);
};

const refusal = (field: string) => invalid("Validation failed.", [{ field: field.slice(0, 200), detail: WORDS }]);
