// Runs a scenario of web.mjs in a real headless Chromium and collects its figures.
import { join } from "node:path";
import { needs } from "#test/support/needs.ts";
import type { Figures } from "../row.ts";

const SCRIPT = join(import.meta.dir, "..", "web.mjs");

/** Actions that the scenario may request while it runs, by name. */
type Actions = Readonly<Record<string, () => Promise<unknown>>>;

/** Returns the figures of the scenario on this server. Without a token, the requests are anonymous. */
export const browse = async (
  product: { readonly url: string; readonly adminToken: string },
  scenario: string,
  options: object = {},
  actions: Actions = {},
): Promise<Figures> => {
  const args = [needs.chromium.file, product.url, product.adminToken, scenario, JSON.stringify(options)];
  await using child = Bun.spawn([needs.node.file, SCRIPT, ...args], {
    stdin: "pipe",
    stdout: "pipe",
    stderr: "inherit",
  });
  let unterminated = "";
  let figures: Figures | undefined;
  const decoder = new TextDecoder();
  for await (const chunk of child.stdout) {
    const lines = (unterminated + decoder.decode(chunk, { stream: true })).split("\n");
    unterminated = lines.pop() ?? "";
    for (const line of lines) {
      if (!line.startsWith("@")) figures = JSON.parse(line) as Figures;
      else {
        await actions[line.slice(1)]?.();
        child.stdin.write("done\n");
        child.stdin.flush();
      }
    }
  }
  if ((await child.exited) !== 0 || !figures) throw new Error(`the scenario ${scenario} failed`);
  return figures;
};
