// The text differ, in its own chunk.
export { structuredPatch } from "diff";
