// What the person at the command line typed, or wrote into a settings file, cannot be used. Thrown by the settings and the
// verbs, answered by src/main.ts with exit code 2. Requests over HTTP never see it: their error is `AppError`.

/** One setting or argument that cannot be used. */
export interface Problem {
  /** As the person wrote it: `--address`, `SLIPWAY_ADDRESS`, `address`, or a verb's name. */
  name: string;
  /** Where it came from, in words: `command line`, `environment`, or the path of the settings file. */
  from: string;
  /** What is wrong and which form is accepted. Never contains the value of a secret. */
  detail: string;
}

export class UsageError extends Error {
  override readonly name = "UsageError";
  readonly problems: readonly Problem[];
  /** All of it in a sentence, where that is plainer than a list of problems. */
  readonly sentence: string | undefined;

  constructor(problems: readonly Problem[], sentence?: string) {
    super(sentence ?? problems.map((problem) => `${problem.name} (${problem.from}): ${problem.detail}`).join("\n"));
    this.problems = problems;
    this.sentence = sentence;
  }
}

/** A usage error about one argument of the command line. */
export const usageError = (name: string, detail: string): UsageError =>
  new UsageError([{ name, from: "command line", detail }]);
