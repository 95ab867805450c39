// Stories that access the server's internals: they wait for its events, advance its clock or read its tables. They need the server in this
// process. Against the compiled binary they are skipped, because they would only test the source again.
import { describe, test } from "bun:test";
import { testSingleServer } from "./one-server.ts";

const isBinary = process.env.SLIPWAY_TEST_BINARY !== undefined;

type SkippedTest = ((...args: never[]) => void) & { each(rows: unknown): (...args: never[]) => void };
const skipped: SkippedTest = Object.assign(() => {}, { each: () => () => {} });

/** `test`, if the server runs in this process. */
export const testInProcess = (isBinary ? skipped : test) as typeof test;

/** Like testInProcess(), for a story that needs all state to be in one server process. */
export const testInSingleProcess = (isBinary ? skipped : testSingleServer("memory")) as typeof test;

/** `describe`, if the server runs in this process. */
export const describeInProcess = (isBinary ? skipped : describe) as typeof describe;
