// TypeScript's compiler as a process that runs next to tests: arguments and variables with which it takes the least processor time.
import { join } from "node:path";
import { ROOT } from "./documents.ts";

/**
 * Arguments for Bun that check the types of a project. One checker: each of several also checks the types that their files share. On two
 * cores, which the tests use, four checkers take twice the processor time and no less time.
 */
export const TYPE_CHECKER: readonly string[] = [join(ROOT, "node_modules/typescript/bin/tsc"), "--checkers", "1"];

/** Lets the compiler, which runs for seconds, collect its garbage less often. */
export const TYPE_CHECKER_ENV: Readonly<Record<string, string>> = { GOGC: "400" };
