// Handles objects in a body that have a member called `toString`. The validator puts the value into its message, which throws for these
// objects, and the caller would not learn what is wrong.

/** A letter of `toString` written as an escape. Common escapes, such as those of colors in a log, do not match. */
const ESCAPED_LETTER = /\\u00(?:53|6[79ef]|7[24])/i;

const asText = { value: () => "[object Object]" };

/** Makes every object in `value` convertible to text without a visible change. `text`: the JSON it was parsed from. */
export const keepAsText = (text: string, value: unknown): void => {
  if (!text.includes("toString") && !(text.includes("\\u00") && ESCAPED_LETTER.test(text))) return;
  const left: unknown[] = [value];
  // Iterative, because a sender can nest a body arbitrarily deep.
  for (let one = left.pop(); one !== undefined; one = left.pop()) {
    if (typeof one !== "object" || one === null) continue;
    if (Object.hasOwn(one, "toString")) Object.defineProperty(one, Symbol.toPrimitive, asText);
    for (const member of Object.values(one)) if (typeof member === "object" && member !== null) left.push(member);
  }
};
