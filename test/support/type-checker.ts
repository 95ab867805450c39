// TypeScript's compiler as a process that runs next to tests: the arguments and variables with which it uses the least CPU time.
import { join } from "node:path";
import { ROOT } from "./documents.ts";

/**
 * Arguments for Bun that check the types of a project. There is one checker, because several would all check the types that their files
 * share. On two cores, which the tests use, four checkers take twice the CPU time and the same time by the clock.
 */
export const TYPE_CHECKER: readonly string[] = [join(ROOT, "node_modules/typescript/bin/tsc"), "--checkers", "1"];

/** Makes the compiler, which runs for seconds, collect its garbage less often. */
export const TYPE_CHECKER_ENV: Readonly<Record<string, string>> = { GOGC: "400" };
