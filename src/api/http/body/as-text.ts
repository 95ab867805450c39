// Objects of a body with a member called toString. The validator puts what it found into its message, which throws for these: nothing would
// tell the caller what is wrong.

const asText = { value: () => "[object Object]" };

/** Lets every object in `value` be turned into text, without a change that anyone sees. `text`: the JSON that it was read from. */
export const keepAsText = (text: string, value: unknown): void => {
  // The name may be written with escapes.
  if (!text.includes("toString") && !text.includes("\\u")) return;
  const left: unknown[] = [value];
  // No recursion: a body may be as deep as its sender likes.
  for (let one = left.pop(); one !== undefined; one = left.pop()) {
    if (typeof one !== "object" || one === null) continue;
    if (Object.hasOwn(one, "toString")) Object.defineProperty(one, Symbol.toPrimitive, asText);
    for (const member of Object.values(one)) if (typeof member === "object" && member !== null) left.push(member);
  }
};
