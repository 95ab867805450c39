// Rejects NUL characters in the text of a request, on every kind of store: PostgreSQL cannot store them, and many programs treat NUL as the
// end of a text. Text from agents and models is cleaned where it arrives.
import { invalid } from "#base/errors.ts";

const PROBLEM = "must not contain NUL";

/** Throws 400 and names the first text or member name that contains NUL. `text`: the JSON the value was parsed from. */
export const refuseNul = (text: string, value: unknown): void => {
  if (!text.includes("\\u0000")) return;
  const pending: { readonly field: string; readonly value: unknown }[] = [{ field: "", value }];
  // Iterative, because a sender can nest a body arbitrarily deep.
  for (let current = pending.shift(); current; current = pending.shift()) {
    const { field, value: currentValue } = current;
    if (typeof currentValue === "string" && currentValue.includes("\0")) throw makeNulError(field);
    if (typeof currentValue !== "object" || currentValue === null) continue;
    for (const [name, member] of Object.entries(currentValue)) {
      if (name.includes("\0")) throw makeNulError(field);
      pending.push({ field: field === "" ? name : `${field}.${name}`, value: member });
    }
  }
};

/** Throws 400 when a request's path or query contains NUL. */
export const refuseNulIn = (url: string): void => {
  if (url.includes("%00")) throw invalid("Validation failed.", [{ field: "url", detail: PROBLEM }]);
};

const makeNulError = (field: string) =>
  invalid("Validation failed.", [{ field: field.slice(0, 200), detail: PROBLEM }]);
