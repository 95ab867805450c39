// Stories that access the server's internals: they wait for its events, move its clock or read its tables. They run with a server in this
// process. Against the compiled binary they are not registered, because they would only test the source again.
import { describe, test } from "bun:test";
import { testOfOne } from "./one-server.ts";

const binary = process.env.SLIPWAY_TEST_BINARY !== undefined;

type Nothing = ((...args: never[]) => void) & { each(rows: unknown): (...args: never[]) => void };
const nothing: Nothing = Object.assign(() => {}, { each: () => () => {} });

/** `test`, if the server runs in this process. */
export const testInside = (binary ? nothing : test) as typeof test;

/** Like testInside(), for a story that needs all state to be in one server process. */
export const testInsideOne = (binary ? nothing : testOfOne("memory")) as typeof test;

/** `describe`, if the server runs in this process. */
export const describeInside = (binary ? nothing : describe) as typeof describe;
