// Thrown for invalid command-line arguments and settings, and handled by src/main.ts with exit code 2. HTTP requests never cause it: their
// error is `AppError`.

/** One invalid setting or argument. */
export interface Problem {
  /** As written: `--address`, `SLIPWAY_ADDRESS`, `address`, or a command's name. */
  name: string;
  /** The source: `command line`, `environment`, or the path of the settings file. */
  from: string;
  /** The problem and the accepted format. Never contains the value of a secret. */
  detail: string;
}

export class UsageError extends Error {
  override readonly name = "UsageError";
  readonly problems: readonly Problem[];
  /** The whole message as one sentence, where that is clearer than a list of problems. */
  readonly sentence: string | undefined;

  constructor(problems: readonly Problem[], sentence?: string) {
    super(sentence ?? problems.map((problem) => `${problem.name} (${problem.from}): ${problem.detail}`).join("\n"));
    this.problems = problems;
    this.sentence = sentence;
  }
}

/** Returns a usage error about one command-line argument. */
export const usageError = (name: string, detail: string): UsageError =>
  new UsageError([{ name, from: "command line", detail }]);
