// Whether a build hides the owner's data: every row of the decision.
import { expect, test } from "bun:test";
import { type BuildCause, hidesUserData } from "#domain/builds/user-data.ts";

const createPersonCause = (
  transition: "start" | "stop" | "delete",
  mayEnter: boolean,
  isChanged: boolean,
): BuildCause => ({
  by: "person",
  transition,
  mayEnter,
  isChanged,
});
const server: BuildCause = { by: "server" };

/** The build's cause, and whether it hides the data: if the previous build did not, and if it did. */
const ROWS: readonly (readonly [string, BuildCause, boolean, boolean])[] = [
  ["a schedule, a connection or a model", server, false, true],
  ["a start by a person who may enter", createPersonCause("start", true, false), false, false],
  ["a changed start by a person who may enter", createPersonCause("start", true, true), false, false],
  ["a stop by a person who may enter", createPersonCause("stop", true, false), false, true],
  ["a changed stop by a person who may enter", createPersonCause("stop", true, true), false, true],
  ["a deletion by a person who may enter", createPersonCause("delete", true, false), false, true],
  ["a start by a person who may not enter", createPersonCause("start", false, false), true, true],
  ["a changed start by a person who may not enter", createPersonCause("start", false, true), true, true],
  ["a stop by a person who may not enter", createPersonCause("stop", false, false), false, true],
  ["a changed stop by a person who may not enter", createPersonCause("stop", false, true), true, true],
  ["a deletion by a person who may not enter", createPersonCause("delete", false, false), false, true],
  ["a changed deletion by a person who may not enter", createPersonCause("delete", false, true), true, true],
];

test.each(ROWS)("[WK-33] %s", (_, cause, afterShown, afterHidden) => {
  expect([hidesUserData(cause, false), hidesUserData(cause, true)]).toEqual([afterShown, afterHidden]);
});
