// What finds the differences of texts, in a chunk of its own.
export { structuredPatch } from "diff";
