// Finds flaky failures: tests that failed in the run and passed when their file ran again separately. Pure; used by test/run.ts.
import type { TestCase } from "./junit.ts";
import { NOT_LOADED_TITLE } from "./unreported.ts";

/** A file whose failures all disappeared in the second run. */
export type UnsteadyFile = { readonly file: string; readonly failures: readonly Failure[]; readonly tests: number };
type Failure = Pick<TestCase, "title" | "reason">;

export type RetryVerdict = {
  /** The tests with their final outcome. */
  readonly cases: readonly TestCase[];
  readonly unsteady: readonly UnsteadyFile[];
};

/** The run fails with more flaky files than this, about one in 60: so many have a cause, and hide real problems. */
export const MAX_UNSTEADY = 12;

/** Returns the files with a failed test. */
export const listFailedFiles = (cases: readonly TestCase[]): string[] => [
  ...new Set(cases.filter(({ outcome }) => outcome === "failed").map(({ file }) => file)),
];

// Titles may contain a seed that differs in each run.
const toStableName = ({ file, title }: TestCase): string => `${file} ${title.replaceAll(/seed \d+/g, "seed")}`;

/** Titles of failures that hide other tests of their file: it did not load, a hook failed or its process ended (both are Bun's titles). */
const HIDING_TITLES: readonly string[] = [NOT_LOADED_TITLE, "(unnamed)", "(worker crashed)"];

/** Returns the first run's cases. If a failure has hidden tests of a file, the file's cases are those of the second run. */
const mergeCases = (firstRun: readonly TestCase[], secondRun: readonly TestCase[]): TestCase[] => {
  const rerunFiles = new Set(secondRun.map(({ file }) => file));
  const hidden = new Set(
    firstRun
      .filter(
        ({ file, title, outcome }) => outcome === "failed" && HIDING_TITLES.includes(title) && rerunFiles.has(file),
      )
      .map(({ file }) => file),
  );
  return [...firstRun.filter(({ file }) => !hidden.has(file)), ...secondRun.filter(({ file }) => hidden.has(file))];
};

/** Combines both runs. A test that failed first and then passed counts as passed, and its file is reported as flaky. */
export const judgeRetries = (firstRun: readonly TestCase[], secondRun: readonly TestCase[]): RetryVerdict => {
  const passedOnRetry = (testCase: TestCase): boolean => {
    const tries = secondRun.filter((retry) => toStableName(retry) === toStableName(testCase));
    return testCase.outcome === "failed" && tries.length > 0 && tries.every(({ outcome }) => outcome === "passed");
  };
  const cases = mergeCases(firstRun, secondRun).map(
    (testCase): TestCase => (passedOnRetry(testCase) ? { ...testCase, outcome: "passed" } : testCase),
  );
  const stillFailed = new Set(listFailedFiles(cases));
  const unsteady = listFailedFiles(firstRun)
    .filter((file) => !stillFailed.has(file))
    .map((file) => ({
      file,
      failures: firstRun
        .filter((testCase) => testCase.file === file && testCase.outcome === "failed")
        .map(({ title, reason }) => ({ title, reason })),
      tests: cases.filter((testCase) => testCase.file === file).length,
    }));
  return { cases, unsteady };
};

/** Returns the summary lines for a flaky file: number of failures, seed, tests, and messages. */
export const formatUnsteady = ({ file, failures, tests }: UnsteadyFile, seed: number): string[] => [
  `        unsteady: ${file}: ${failures.length} of ${tests} failed, then none of ${tests} (SLIPWAY_TEST_SEED=${seed})`,
  ...failures.flatMap((failure) => [`          ${failure.title}`, ...formatReason(failure)]),
];

/** Returns the summary lines with a failed test's message, if the report contains it. */
export const formatReason = ({ reason }: Failure): string[] => (reason === undefined ? [] : [`            ${reason}`]);
