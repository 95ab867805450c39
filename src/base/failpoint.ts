// Named places at which a test may kill the process, to prove that what was acknowledged survives (RELIABILITY section 5, check 2).
// Without the hidden setting SLIPWAY_FAILPOINT this is one comparison with undefined.

/** Every failpoint there is; the crash test reads this list so that none goes untested. */
export const FAILPOINTS = [
  "before_commit",
  "after_commit",
  "after_publish",
  "in_checkpoint",
  "in_migration",
  "in_upload",
] as const;

/** Those on the way of a build of Terraform, at a server and at a worker; their crash test reads this list. */
export const BUILD_FAILPOINTS = [
  "build_claimed",
  "build_prepared",
  "build_pushed",
  "build_done",
  "build_forget",
] as const;

export type Failpoint = (typeof FAILPOINTS)[number] | (typeof BUILD_FAILPOINTS)[number];

let armed: Failpoint | undefined;
let remaining = 0;

/** Arms `name[:n]`: the process kills itself the n-th time (default 1) it passes there. Throws for an unknown name. */
export const armFailpoint = (text: string): void => {
  const [name, count] = text.split(":");
  const known = [...FAILPOINTS, ...BUILD_FAILPOINTS];
  const found = known.find((point) => point === name);
  if (!found) throw new Error(`unknown failpoint ${name}; known: ${known.join(", ")}`);
  armed = found;
  remaining = Number(count ?? 1);
};

/** What is armed, in the form `armFailpoint` takes, for a Worker that must arm the same. */
export const armedFailpoint = (): string | undefined => armed && `${armed}:${remaining}`;

/** Dies here, as if by `kill -9`, when this point is armed and its turn has come. */
export const failpoint = (name: Failpoint): void => {
  if (armed === undefined || armed !== name) return;
  remaining -= 1;
  if (remaining <= 0) process.kill(process.pid, "SIGKILL");
};
