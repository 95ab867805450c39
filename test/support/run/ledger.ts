// Which test made which folder, so that a process that outlives its test can be named after it: daemons of local workspaces begin with
// an environment made from nothing, and only their home tells where they come from. Written during runs of test/run.ts only.
import { appendFileSync, existsSync, readFileSync } from "node:fs";

/** The variable that names the file of the run. */
export const RUN_LEDGER = "TEST_RUN_LEDGER";

/** Notes that the test which is running now has made the folder. */
export const noteFolder = (folder: string): void => {
  const file = process.env[RUN_LEDGER];
  if (file) appendFileSync(file, `${JSON.stringify({ folder, place: placeIn(new Error().stack ?? "") })}\n`);
};

/** The first place of a test file in a stack, as file:line; empty when none exists. */
export const placeIn = (stack: string): string => /([^\s(]+\.test\.ts:\d+)/.exec(stack)?.[1] ?? "";

export type NotedFolder = { readonly folder: string; readonly place: string };

/** Everything noted in the file so far. */
export const notedFolders = (file: string): NotedFolder[] =>
  existsSync(file)
    ? readFileSync(file, "utf8")
        .split("\n")
        .filter((line) => line !== "")
        .map((line) => JSON.parse(line) as NotedFolder)
    : [];

/** The test that a place lies in: its file and the last title above it; the place itself where there is no title. */
export const testAt = (place: string): string => {
  const [, file = "", line = "0"] = /^(.*):(\d+)$/.exec(place) ?? [];
  if (!existsSync(file)) return place;
  const above = readFileSync(file, "utf8").split("\n").slice(0, Number(line)).reverse();
  const title = above.map((text) => /"((?:\[[A-Z]+-\d+\] ?)+[^"]*)"/.exec(text)?.[1]).find((one) => one !== undefined);
  return title === undefined ? place : `${place} ${title}`;
};
