// Whether a build hides the owner's data: every row of the decision.
import { expect, test } from "bun:test";
import { type BuildCause, hidesUserData } from "#domain/builds/user-data.ts";

const person = (transition: "start" | "stop" | "delete", mayEnter: boolean, isChanged: boolean): BuildCause => ({
  by: "person",
  transition,
  mayEnter,
  isChanged,
});
const server: BuildCause = { by: "server" };

/** The build's cause, and whether it hides the data: if the previous build did not, and if it did. */
const ROWS: readonly (readonly [string, BuildCause, boolean, boolean])[] = [
  ["a schedule, a connection or a model", server, false, true],
  ["a start by a person who may enter", person("start", true, false), false, false],
  ["a changed start by a person who may enter", person("start", true, true), false, false],
  ["a stop by a person who may enter", person("stop", true, false), false, true],
  ["a changed stop by a person who may enter", person("stop", true, true), false, true],
  ["a deletion by a person who may enter", person("delete", true, false), false, true],
  ["a start by a person who may not enter", person("start", false, false), true, true],
  ["a changed start by a person who may not enter", person("start", false, true), true, true],
  ["a stop by a person who may not enter", person("stop", false, false), false, true],
  ["a changed stop by a person who may not enter", person("stop", false, true), true, true],
  ["a deletion by a person who may not enter", person("delete", false, false), false, true],
  ["a changed deletion by a person who may not enter", person("delete", false, true), true, true],
];

test.each(ROWS)("[WK-33] %s", (_, cause, afterShown, afterHidden) => {
  expect([hidesUserData(cause, false), hidesUserData(cause, true)]).toEqual([afterShown, afterHidden]);
});
