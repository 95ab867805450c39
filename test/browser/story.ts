// Runs a story of this folder under node, in a real Chromium. A story can request something from its test: a line `@name` on its standard
// output runs the action of that name, and then the story continues (ask.mjs).
import { fileURLToPath } from "node:url";
import { needs } from "#test/support/needs.ts";
import { readLines } from "#test/support/net/lines.ts";

/** The result of a story. */
export type StoryResult = Record<string, unknown> & { readonly requests: string[]; readonly consoleErrors: string[] };
type Actions = Readonly<Record<string, () => unknown>>;

/**
 * Runs the story `script` of this folder, and returns its result. `args` follows the browser's program on its command line, then the
 * screenshot folder, if SLIPWAY_PICTURES is set. `browser` is for features that the headless engine lacks, such as system notifications.
 * Throws with the story's standard error if it fails.
 */
export const runStory = async <Own = unknown>(
  script: string,
  args: readonly string[],
  actions: Actions = {},
  browser = needs.headless,
): Promise<StoryResult & Own> => {
  const file = fileURLToPath(new URL(script, import.meta.url));
  const pictures = process.env.SLIPWAY_PICTURES ?? "";
  await using child = Bun.spawn([needs.node.file, file, browser.file, ...args, pictures], {
    stdin: "pipe",
    stdout: "pipe",
    stderr: "pipe",
  });
  const errors = child.stderr.text();
  let result: (StoryResult & Own) | undefined;
  for await (const line of readLines(child.stdout)) {
    if (!line.startsWith("@")) result = JSON.parse(line) as StoryResult & Own;
    else {
      await actions[line.slice(1)]?.();
      child.stdin.write("done\n");
      child.stdin.flush();
    }
  }
  if ((await child.exited) !== 0 || !result) throw new Error(`the browser's story failed:\n${await errors}`);
  return result;
};

/**
 * Messages about 4xx responses that a story provokes, software rendering, and requests that were canceled when a page closed. The last one
 * is about a service worker's script.
 */
const HARMLESS =
  /^Failed to load resource|GPU stall|WebSocket connection to|net::ERR|^An unknown error occurred when fetching the script/;

/** Returns the browser's errors and warnings about the page, without harmless ones. */
export const listPageErrors = ({ consoleErrors }: StoryResult): string[] =>
  consoleErrors.filter((text) => !HARMLESS.test(text));

/**
 * Returns requests to other hosts. Hosts of workspace apps, and the server's other loopback name, which sign-in uses, are not other hosts.
 */
export const listStrayRequests = ({ requests }: StoryResult, origin: string): string[] => {
  const { port } = new URL(origin);
  const isServerHost = (url: string): boolean =>
    /(^|\.)localhost$/.test(new URL(url).hostname) && new URL(url).port === port;
  return requests.filter((url) => !/^(data|blob):/.test(url) && !url.startsWith(origin) && !isServerHost(url));
};
