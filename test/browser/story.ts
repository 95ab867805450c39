// Runs a story of this folder under node, in a real Chromium, and hears what it asks for in the meantime: a line `@name` on its standard output
// is answered by the act of that name, and the story goes on (ask.mjs).
import { fileURLToPath } from "node:url";
import { needs } from "#test/support/needs.ts";
import { linesIn } from "#test/support/net/lines.ts";

/** What a story tells at its end. */
export type Told = Record<string, unknown> & { readonly requests: string[]; readonly complaints: string[] };
type Acts = Readonly<Record<string, () => unknown>>;

/**
 * Plays the story `script` of this folder, and gives what it tells. `given` follows the browser's program on its command line, then the
 * folder of pictures, if SLIPWAY_PICTURES names one. `browser` is for what the engine alone lacks, such as notifications of the system.
 * Throws with its standard error when it fails.
 */
export const runStory = async <Own = unknown>(
  script: string,
  given: readonly string[],
  acts: Acts = {},
  browser = needs.headless,
): Promise<Told & Own> => {
  const file = fileURLToPath(new URL(script, import.meta.url));
  const pictures = process.env.SLIPWAY_PICTURES ?? "";
  await using child = Bun.spawn([needs.node.file, file, browser.file, ...given, pictures], {
    stdin: "pipe",
    stdout: "pipe",
    stderr: "pipe",
  });
  const errors = child.stderr.text();
  let told: (Told & Own) | undefined;
  for await (const line of linesIn(child.stdout)) {
    if (!line.startsWith("@")) told = JSON.parse(line) as Told & Own;
    else {
      await acts[line.slice(1)]?.();
      child.stdin.write("done\n");
      child.stdin.flush();
    }
  }
  if ((await child.exited) !== 0 || !told) throw new Error(`the browser's story failed:\n${await errors}`);
  return told;
};

/** Complaints of the browser that are not about the page: answers of 4xx that the story provokes, and graphics by software. */
export const ownComplaints = ({ complaints }: Told): string[] =>
  complaints.filter((text) => !/^Failed to load resource|GPU stall|WebSocket connection to|net::ERR/.test(text));

/** Requests that left the server. Apps of workspaces have hosts of their own on it, and a sign-in goes by its other loopback name. */
export const strayRequests = ({ requests }: Told, origin: string): string[] => {
  const { port } = new URL(origin);
  const isOwnName = (one: string): boolean =>
    /(^|\.)localhost$/.test(new URL(one).hostname) && new URL(one).port === port;
  return requests.filter((one) => !/^(data|blob):/.test(one) && !one.startsWith(origin) && !isOwnName(one));
};
