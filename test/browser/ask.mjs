// A story asks its test for something it cannot do itself, such as killing the server, and waits until that is done (story.ts).
import { createInterface } from "node:readline";

const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();

export const askTest = async (name) => {
  process.stdout.write(`@${name}\n`);
  await lines.next();
};

/** Signs in at whatever page one was sent to from `address`. */
export const signIn = async (page, address, email, password) => {
  await page.goto(address);
  await page.getByLabel("E-mail").fill(email);
  await page.getByLabel("Password").fill(password);
  await page.getByRole("button", { name: "Sign in", exact: true }).click();
};
