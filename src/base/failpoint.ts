// Named points where a test can kill the process, to prove that acknowledged data survives (RELIABILITY section 5, check 2). Without the
// hidden setting SLIPWAY_FAILPOINT, each costs one comparison with undefined.

/** All failpoints; the crash test reads this list so that none remains untested. */
export const FAILPOINTS = [
  "before_commit",
  "after_commit",
  "after_publish",
  "in_checkpoint",
  "in_migration",
  "in_upload",
] as const;

/** Failpoints of a Terraform build, on the server and on a worker; their crash test reads this list. */
export const BUILD_FAILPOINTS = [
  "build_claimed",
  "build_prepared",
  "build_pushed",
  "build_done",
  "build_forget",
] as const;

/** Failpoints after someone lost access to a workspace, before its agents get new tokens; their test reads this list. */
export const ACCESS_FAILPOINTS = ["access_lost"] as const;

/** Failpoints of a move into a data directory: rows, uploads, and each renamed file; its test reads this list. */
export const MOVE_FAILPOINTS = ["move_row", "move_upload", "move_name"] as const;

/**
 * Failpoints of a snapshot and its restore: workspace frozen, files copied but not in place, in place but not reported, home replaced, and
 * snapshot discarded; its test reads this list.
 */
export const SNAPSHOT_FAILPOINTS = [
  "snapshot_frozen",
  "snapshot_copied",
  "snapshot_made",
  "home_replaced",
  "snapshot_discarded",
] as const;

/**
 * Failpoints of a snapshot by a template module: created but not reported, reported but still on this machine, removed; its test reads this
 * list.
 */
export const MODULE_FAILPOINTS = ["module_applied", "module_stored", "module_removed"] as const;

/**
 * Failpoints of a fork: requested, one workspace created, chats copied, files restored, snapshot about to be deleted; its test reads this
 * list.
 */
export const FORK_FAILPOINTS = ["fork_asked", "fork_made", "fork_chats", "fork_filled", "fork_ended"] as const;

/** Failpoints of a home backup: snapshot ready, data stored, listed, an old one partly removed, files fetched; its test reads this list. */
export const HOME_BACKUP_FAILPOINTS = [
  "home_backup_snapshot",
  "home_backup_stored",
  "home_backup_listed",
  "home_backup_pruning",
  "home_backup_fetched",
] as const;

/** Failpoints of a repository prebuild: started, built, older images removed; its test reads this list. */
export const PREBUILD_FAILPOINTS = ["prebuild_begun", "prebuild_built", "prebuild_pruned"] as const;

/**
 * Failpoints of a trial: trial requested, prompt delivered to a chat, check started, check ended, files of the chosen way copied, restore
 * started, files restored, chat moved to the workspace, fork deleted; its test reads this list.
 */
export const TRIAL_FAILPOINTS = [
  ...(["trial_asked", "trial_delivered", "trial_checking", "trial_checked", "trial_copied"] as const),
  ...(["trial_restoring", "trial_restored", "trial_moved", "trial_deleted"] as const),
] as const;

/** Failpoints of `slipway upgrade`, forward and back; its kill tests read this list. */
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

/** Points where a cluster node stops (SIGSTOP) in the middle of sending a commit, until the test resumes it. */
export const STOPPOINTS = ["after_guard"] as const;

const ALL_FAILPOINTS = [
  ...FAILPOINTS,
  ...BUILD_FAILPOINTS,
  ...ACCESS_FAILPOINTS,
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

export type Failpoint = (typeof ALL_FAILPOINTS)[number];

let armed: Failpoint | undefined;
let interval = 1;
let remaining = 0;

/**
 * Arms `name[:n]`: the process kills itself the n-th time (default 1) it reaches the point, or stops every n-th time at a stop point. Throws
 * for an unknown name.
 */
export const armFailpoint = (text: string): void => {
  const [name, count] = text.split(":");
  const found = ALL_FAILPOINTS.find((point) => point === name);
  if (!found) throw new Error(`unknown failpoint ${name}; known: ${ALL_FAILPOINTS.join(", ")}`);
  armed = found;
  interval = Number(count ?? 1);
  remaining = interval;
};

/** Returns the armed point in the format of `armFailpoint`, for a Worker that must arm the same one. */
export const getArmedFailpoint = (): string | undefined => armed && `${armed}:${remaining}`;

/** Returns whether this point is armed, for points that are reached only by waiting. */
export const isArmed = (name: Failpoint): boolean => armed === name;

/** Kills the process as if by `kill -9`, or stops it, if this point is armed and its count has been reached. */
export const failpoint = (name: Failpoint): void => {
  if (armed === undefined || armed !== name) return;
  remaining -= 1;
  if (remaining > 0) return;
  if (name !== "after_guard") process.kill(process.pid, "SIGKILL");
  remaining = interval;
  process.kill(process.pid, "SIGSTOP");
};
