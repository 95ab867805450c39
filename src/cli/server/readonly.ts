// `slipway readonly [--writable FILE]... -- PROGRAM [ARGUMENT]...`: runs a program that can write only to these files, for chats in plan
// mode (rule PM-6). Replaces this process with the program, so that process ID, group and exit status are the program's.
import { usageError } from "#base/usage-error.ts";
import { execReadOnly } from "#src/daemon/sandbox/landlock.ts";
import { EXIT, type RunVerb } from "../verb.ts";

export const run: RunVerb = async ({ argv, printError }) => {
  const separatorIndex = argv.indexOf("--");
  const [program, ...words] = separatorIndex < 0 ? [] : argv.slice(separatorIndex + 1);
  if (program === undefined) throw usageError("readonly", "expected `--` and a program");
  const writable: string[] = [];
  for (let i = 0; i < separatorIndex; i += 2) {
    const path = argv[i + 1];
    if (argv[i] !== "--writable" || i + 1 >= separatorIndex || path === undefined)
      throw usageError(argv[i] ?? "", "expected --writable FILE");
    writable.push(path);
  }
  try {
    return execReadOnly([program, ...words], writable);
  } catch (error) {
    printError(`slipway readonly: ${(error as Error).message}\n`);
    return EXIT.failed;
  }
};
