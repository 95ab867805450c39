// Which failures of a run are unsteady: tests that failed among the others and passed when their file ran again on its own. Pure; used
// by test/run.ts.
import type { TestCase } from "./junit.ts";
import { NOT_LOADED } from "./unreported.ts";

/** A file whose failures were all gone in the second try. */
export type UnsteadyFile = { readonly file: string; readonly failures: readonly Failure[]; readonly tests: number };
type Failure = Pick<TestCase, "title" | "reason">;

export type Judged = {
  /** The tests with the outcome that counts. */
  readonly cases: readonly TestCase[];
  readonly unsteady: readonly UnsteadyFile[];
};

/** More unsteady files than this, one in some 140, fail the run: they are no accident, and hide what is broken. */
export const MAX_UNSTEADY = 5;

/** The files in which a test failed. */
export const failedFiles = (cases: readonly TestCase[]): string[] => [
  ...new Set(cases.filter(({ outcome }) => outcome === "failed").map(({ file }) => file)),
];

// Titles may name a seed that each run draws again.
const nameOf = ({ file, title }: TestCase): string => `${file} ${title.replaceAll(/seed \d+/g, "seed")}`;

/** Failures that hide tests of their file: it did not load, a hook failed (Bun's title), or its process ended (Bun's title). */
const HIDING: readonly string[] = [NOT_LOADED, "(unnamed)", "(worker crashed)"];

/** The first try, with all cases of the second for each file of which the first one does not know the tests. */
const completed = (first: readonly TestCase[], second: readonly TestCase[]): TestCase[] => {
  const again = new Set(second.map(({ file }) => file));
  const hidden = new Set(
    first
      .filter(({ file, title, outcome }) => outcome === "failed" && HIDING.includes(title) && again.has(file))
      .map(({ file }) => file),
  );
  return [...first.filter(({ file }) => !hidden.has(file)), ...second.filter(({ file }) => hidden.has(file))];
};

/** Both tries together: what failed first and passed then has passed, and its file is named. */
export const judge = (first: readonly TestCase[], second: readonly TestCase[]): Judged => {
  const passedAgain = (one: TestCase): boolean => {
    const tries = second.filter((again) => nameOf(again) === nameOf(one));
    return one.outcome === "failed" && tries.length > 0 && tries.every(({ outcome }) => outcome === "passed");
  };
  const cases = completed(first, second).map(
    (one): TestCase => (passedAgain(one) ? { ...one, outcome: "passed" } : one),
  );
  const stillFailed = new Set(failedFiles(cases));
  const unsteady = failedFiles(first)
    .filter((file) => !stillFailed.has(file))
    .map((file) => ({
      file,
      failures: first
        .filter((one) => one.file === file && one.outcome === "failed")
        .map(({ title, reason }) => ({ title, reason })),
      tests: cases.filter((one) => one.file === file).length,
    }));
  return { cases, unsteady };
};

/** The lines of the summary for an unsteady file: how often it failed, with which seed, which tests, and what they said. */
export const unsteadyLines = ({ file, failures, tests }: UnsteadyFile, seed: number): string[] => [
  `        unsteady: ${file}: ${failures.length} of ${tests} failed, then none of ${tests} (SLIPWAY_TEST_SEED=${seed})`,
  ...failures.flatMap((failure) => [`          ${failure.title}`, ...reasonLines(failure)]),
];

/** What a failed test said, if the report knows it, in the summary's lines. */
export const reasonLines = ({ reason }: Failure): string[] => (reason === undefined ? [] : [`            ${reason}`]);
