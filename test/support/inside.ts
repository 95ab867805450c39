// Stories that reach into the server: they wait for its events, move its clock or look at its tables. They run alongside a server in
// this process; against the compiled binary they are not registered at all, since they would only show the source again.
import { describe, test } from "bun:test";
import { testOfOne } from "./one-server.ts";

const binary = process.env.SLIPWAY_TEST_BINARY !== undefined;

type Nothing = ((...args: never[]) => void) & { each(rows: unknown): (...args: never[]) => void };
const nothing: Nothing = Object.assign(() => {}, { each: () => () => {} });

/** `test`, where the server runs in this process. */
export const testInside = (binary ? nothing : test) as typeof test;

/** The same of a story that puts something of its own into the memory of the one process. */
export const testInsideOne = (binary ? nothing : testOfOne("memory")) as typeof test;

/** `describe`, where the server runs in this process. */
export const describeInside = (binary ? nothing : describe) as typeof describe;
