// What the parts of a release share: where things are, and the programs that were built.
import type { System } from "#src/build.ts";

export type Made = {
  /** The source tree. */
  readonly root: string;
  /** What is published. */
  readonly out: string;
  /** Removed in the end. */
  readonly scratch: string;
  readonly version: string;
  /** The time of everything inside of archives, in seconds. */
  readonly epoch: number;
  /** The environment of the programs that are run. */
  readonly env: Readonly<Record<string, string | undefined>>;
  /** The program of each system that was built. */
  readonly programs: Readonly<Partial<Record<System, string>>>;
  /** The public key of the release, as minisign prints it; empty when it is not signed. */
  readonly publicKey: string;
  /** Where the release will be, such as `https://downloads.example.com/slipway`. */
  readonly url: string | undefined;
};
