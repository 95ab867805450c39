// Records which test created which folder, so that a process that outlives its test can be attributed to the test. Daemons of local
// workspaces start with an empty environment, and only their home shows where they come from. Written only during runs of test/run.ts.
import { appendFileSync, existsSync, readFileSync } from "node:fs";

/** The variable with the run's file. */
export const RUN_LEDGER = "TEST_RUN_LEDGER";

/** Records that the current test created the folder. */
export const noteFolder = (folder: string): void => {
  const file = process.env[RUN_LEDGER];
  if (file)
    appendFileSync(file, `${JSON.stringify({ folder, location: findTestLocation(new Error().stack ?? "") })}\n`);
};

/** Returns the first test file in a stack, as file:line, or an empty string. */
export const findTestLocation = (stack: string): string => /([^\s(]+\.test\.ts:\d+)/.exec(stack)?.[1] ?? "";

export type NotedFolder = { readonly folder: string; readonly location: string };

/** Returns everything recorded in the file so far. */
export const readNotedFolders = (file: string): NotedFolder[] =>
  existsSync(file)
    ? readFileSync(file, "utf8")
        .split("\n")
        .filter((line) => line !== "")
        .map((line) => JSON.parse(line) as NotedFolder)
    : [];

/** Returns the test at a location: the location and the last title above it. Returns the location alone if there is no title. */
export const describeLocation = (location: string): string => {
  const [, file = "", line = "0"] = /^(.*):(\d+)$/.exec(location) ?? [];
  if (!existsSync(file)) return location;
  const above = readFileSync(file, "utf8").split("\n").slice(0, Number(line)).reverse();
  const title = above
    .map((text) => /"((?:\[[A-Z]+-\d+\] ?)+[^"]*)"/.exec(text)?.[1])
    .find((candidate) => candidate !== undefined);
  return title === undefined ? location : `${location} ${title}`;
};
