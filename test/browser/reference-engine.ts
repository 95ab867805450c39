// Checks whether the reference screenshots are valid on this machine: another engine or font renders every line slightly differently. Other
// stories check overflow, contrast and positions in every browser.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type Need, needs } from "#test/support/needs.ts";

const FILE = join(import.meta.dir, "reference-engine.json");

interface Engine {
  /** Name and major version of the browser. */
  browser: string;
  /** The font used as the system font. */
  font: string;
}

const readOutput = (command: string[]): string =>
  Bun.which(command[0] ?? "") ? Bun.spawnSync(command, { stderr: "ignore" }).stdout.toString().trim() : "";

/** Returns the engine and font of this machine. */
const detectEngine = (): Engine => ({
  browser: /\w+ \d+/.exec(readOutput([needs.headless.file, "--version"]))?.[0] ?? "",
  font: readOutput(["fc-match", "system-ui", "file"]).split("/").at(-1) ?? "",
});

/** Records this machine's engine and font as those of the references. */
export const recordEngine = (): void => writeFileSync(FILE, `${JSON.stringify(detectEngine(), undefined, 2)}\n`);

/** The engine and fonts that the references were rendered with. */
export const requireReferenceEngine = (): Need => {
  const recorded = JSON.parse(readFileSync(FILE, "utf8")) as Engine;
  const current = detectEngine();
  const found = recorded.browser === current.browser && recorded.font === current.font;
  const reason = `the references were rendered by ${recorded.browser} with ${recorded.font}; this machine has ${current.browser || "no browser"} with ${current.font || "no fontconfig"}`;
  return { found, reason, file: "" };
};
