// Lets a story ask its test to do something that the story cannot, such as killing the server, and waits until it is done (story.ts).
import { createInterface } from "node:readline";

const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();

export const askTest = async (name) => {
  process.stdout.write(`@${name}\n`);
  await lines.next();
};
