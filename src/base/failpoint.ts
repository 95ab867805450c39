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

/** On the way of a move into a data directory: rows, uploads, and each name that is given; its test reads this list. */
export const MOVE_FAILPOINTS = ["move_row", "move_upload", "move_name"] as const;

/** On the way of a snapshot and of its restore: copied and not in place, in place and not reported, between the two homes; its test reads this list. */
export const SNAPSHOT_FAILPOINTS = [
  "snapshot_frozen",
  "snapshot_copied",
  "snapshot_made",
  "home_replaced",
  "snapshot_discarded",
] as const;

/** On the way of a snapshot by a module of the template: made and not reported, reported and still on this machine, removed; its test reads this list. */
export const MODULE_FAILPOINTS = ["module_applied", "module_stored", "module_removed"] as const;

/** On the way of a fork: asked for, one of its workspaces made, its chats copied, its files given, its snapshot to be deleted; its test reads this list. */
export const FORK_FAILPOINTS = ["fork_asked", "fork_made", "fork_chats", "fork_filled", "fork_ended"] as const;

/** On the way of a home backup: its snapshot ready, its data stored, listed, an old one removed in part, files fetched back; its test reads this list. */
export const HOME_BACKUP_FAILPOINTS = [
  "home_backup_snapshot",
  "home_backup_stored",
  "home_backup_listed",
  "home_backup_pruning",
  "home_backup_fetched",
] as const;

/** On the way of an image that is built ahead: begun, built, older ones removed; its test reads this list. */
export const PREBUILD_FAILPOINTS = ["prebuild_begun", "prebuild_built", "prebuild_pruned"] as const;

/**
 * On the way of a trial: asked for, a chat has its prompt, a check begins, has ended, the kept files are copied, are being restored, are there, its
 * chat is there too, a fork is deleted; its test reads this list.
 */
export const TRIAL_FAILPOINTS = [
  ...(["trial_asked", "trial_delivered", "trial_checking", "trial_checked", "trial_copied"] as const),
  ...(["trial_restoring", "trial_restored", "trial_moved", "trial_deleted"] as const),
] as const;

/** Of `slipway upgrade`, forward and back; its kill tests read this list. */
export const UPGRADE_FAILPOINTS = [
  "upgrade_unpacked",
  "upgrade_backed_up",
  "upgrade_kept",
  "upgrade_replaced",
  "upgrade_restarted",
  "upgrade_stopped",
  "upgrade_data_back",
  "upgrade_program_back",
] as const;

/** Of a node of a cluster alone: there it stands still (SIGSTOP) with a commit half sent, until somebody lets it go on. */
export const STOPPOINTS = ["after_guard"] as const;

const ALL = [
  ...FAILPOINTS,
  ...BUILD_FAILPOINTS,
  ...MOVE_FAILPOINTS,
  ...SNAPSHOT_FAILPOINTS,
  ...MODULE_FAILPOINTS,
  ...FORK_FAILPOINTS,
  ...HOME_BACKUP_FAILPOINTS,
  ...PREBUILD_FAILPOINTS,
  ...TRIAL_FAILPOINTS,
  ...UPGRADE_FAILPOINTS,
  ...STOPPOINTS,
] as const;

export type Failpoint = (typeof ALL)[number];

let armed: Failpoint | undefined;
let remaining = 0;

/** Arms `name[:n]`: the process kills itself the n-th time (default 1) it passes there. Throws for an unknown name. */
export const armFailpoint = (text: string): void => {
  const [name, count] = text.split(":");
  const found = ALL.find((point) => point === name);
  if (!found) throw new Error(`unknown failpoint ${name}; known: ${ALL.join(", ")}`);
  armed = found;
  remaining = Number(count ?? 1);
};

/** What is armed, in the form `armFailpoint` takes, for a Worker that must arm the same. */
export const armedFailpoint = (): string | undefined => armed && `${armed}:${remaining}`;

/** True when this point is armed, for one that is reached only by waiting. */
export const isArmed = (name: Failpoint): boolean => armed === name;

/** Dies here, as if by `kill -9`, or stands still, when this point is armed and its turn has come. It stands still once. */
export const failpoint = (name: Failpoint): void => {
  if (armed === undefined || armed !== name) return;
  remaining -= 1;
  if (remaining > 0) return;
  if (name !== "after_guard") process.kill(process.pid, "SIGKILL");
  armed = undefined;
  process.kill(process.pid, "SIGSTOP");
};
