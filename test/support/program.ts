// The program as a process of its own, for tests that start, kill or replace one: compiled where test/run.ts has built it alongside this run
// (SLIPWAY_TEST_PROGRAM) or where the compiled binary is what is tested (SLIPWAY_TEST_BINARY), else from source. Compiled it starts in a
// third of the processor's time, so the runner builds it first.
import { fileURLToPath } from "node:url";

const MAIN = fileURLToPath(new URL("../../src/main.ts", import.meta.url));

/** The compiled program that processes of tests run; undefined from source. */
export const compiledProgram = (): string | undefined =>
  process.env.SLIPWAY_TEST_BINARY || process.env.SLIPWAY_TEST_PROGRAM || undefined;

/** The command without its verb. */
export const programCommand = (): string[] => {
  const compiled = compiledProgram();
  return compiled ? [compiled] : [process.execPath, "--no-env-file", MAIN];
};
