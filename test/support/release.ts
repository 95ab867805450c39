// A test release: created by the code that creates real ones, with small scripts as programs.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { makeRelease, type ReleaseOptions } from "#src/release/release.ts";
import { generateSigningKey } from "#src/release/signing-key.ts";
import { needs } from "./needs.ts";

/** The timestamp of all archive entries. */
const EPOCH = 1_700_000_000;

/** Prints its arguments; executes the program in REAL_PROGRAM if set. */
export const STAND_IN_PROGRAM = [
  "#!/bin/sh",
  '[ -z "$REAL_PROGRAM" ] || exec $REAL_PROGRAM "$@"',
  'echo "Slipway v0.2.0 $* as $(id -u) in $(pwd)"',
  "",
].join("\n");

/** Is evaluated when a test file loads, because nfpm may still be in preparation. */
const PATH = needs.nfpm.found ? `${dirname(needs.nfpm.file)}:${process.env.PATH}` : (process.env.PATH ?? "");

/** Creates a release in a new folder. `program`: the text of the program for all systems. */
export const createTestRelease = async (options: Partial<ReleaseOptions> & { program?: string } = {}) => {
  const { program = STAND_IN_PROGRAM, ...overrides } = options;
  const folder = mkdtempSync(join(tmpdir(), "slipway-release-"));
  const file = join(folder, "program");
  writeFileSync(file, program, { mode: 0o755 });
  const out = join(folder, "release");
  const lines: string[] = [];
  const isComplete = await makeRelease(
    Object.assign(
      {
        out,
        version: "0.2.0",
        key: generateSigningKey(),
        epoch: EPOCH,
        env: { PATH },
        programs: { "linux-amd64": file, "linux-arm64": file, "darwin-amd64": file, "darwin-arm64": file },
        printLine: (line: string) => void lines.push(line),
      },
      overrides,
    ),
  );
  return { folder, out, lines, isComplete, [Symbol.dispose]: () => rmSync(folder, { recursive: true, force: true }) };
};
