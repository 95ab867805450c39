// The program as a separate process, for tests that start, kill or replace it. It is compiled if test/run.ts has built it in parallel
// (SLIPWAY_TEST_PROGRAM) or if the compiled binary is under test (SLIPWAY_TEST_BINARY); otherwise it runs from source. The compiled program
// starts with a third of the CPU time, so the runner builds it first.
import { fileURLToPath } from "node:url";

const MAIN = fileURLToPath(new URL("../../src/main.ts", import.meta.url));

/** Returns the compiled program for test processes; undefined if they run from source. */
export const findCompiledProgram = (): string | undefined =>
  process.env.SLIPWAY_TEST_BINARY || process.env.SLIPWAY_TEST_PROGRAM || undefined;

/** Returns the command that starts the program, without arguments. */
export const toProgramCommand = (): string[] => {
  const compiled = findCompiledProgram();
  return compiled ? [compiled] : [process.execPath, "--no-env-file", MAIN];
};
