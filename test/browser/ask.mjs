// Lets a story ask its test for something it cannot do itself, such as killing the server, and waits until that is done (story.ts).
import { createInterface } from "node:readline";

const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();

export const askTest = async (name) => {
  process.stdout.write(`@${name}\n`);
  await lines.next();
};
