// Objects of a body with a member called toString. The validator puts what it found into its message, which throws for these: nothing would
// tell the caller what is wrong.

/** A letter of the name that is written as an escape. What most escapes stand for, such as colours in a log, is none. */
const ESCAPED_LETTER = /\\u00(?:53|6[79ef]|7[24])/i;

const asText = { value: () => "[object Object]" };

/** Lets every object in `value` be turned into text, without a change that anyone sees. `text`: the JSON that it was read from. */
export const keepAsText = (text: string, value: unknown): void => {
  if (!text.includes("toString") && !(text.includes("\\u00") && ESCAPED_LETTER.test(text))) return;
  const left: unknown[] = [value];
  // No recursion: a body may be as deep as its sender likes.
  for (let one = left.pop(); one !== undefined; one = left.pop()) {
    if (typeof one !== "object" || one === null) continue;
    if (Object.hasOwn(one, "toString")) Object.defineProperty(one, Symbol.toPrimitive, asText);
    for (const member of Object.values(one)) if (typeof member === "object" && member !== null) left.push(member);
  }
};
