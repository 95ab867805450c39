// Findings of `slipway doctor` about local workspaces: whether they are available, to whom, and the consequences.
import { dirname, join, resolve } from "node:path";
import { type Config, isUsedOnlyLocally, listSharedUseSettings } from "#base/config.ts";
import { findLocalUser, LocalUserError, runAs } from "#src/provisioners/local/user.ts";
import type { Finding } from "./finding.ts";

const name = "local workspaces";

/**
 * Returns whether local workspaces are available, to whom, and the consequences; a warning when people beyond this machine's get the
 * server's access.
 */
export const checkLocalWorkspaces = (config: Config): Finding => {
  if (config.database_url !== undefined) {
    return {
      name,
      status: "ok",
      detail: "not available in a cluster: other nodes can't reach processes on one node's machine",
    };
  }
  const isAlone = isUsedOnlyLocally(config);
  if (!isAlone && !config.allow_local_provisioner_off_loopback) {
    return { name, status: "ok", detail: `off, because ${listSharedUseSettings(config).join(" and ")}` };
  }
  const { local_workspace_user: user, allow_local_provisioner_for_members: forMembers } = config;
  if (user !== undefined) {
    return { name, status: "ok", detail: `available to everyone with an account; they all run as the user ${user}` };
  }
  const allowedUsers = forMembers ? "everyone with an account" : "owners of the deployment";
  const detail = `available to ${allowedUsers}, who can do everything there that the server's user can`;
  return { name, status: isAlone && !forMembers ? "ok" : "warn", detail };
};

/** Checks that the user that local workspaces run as exists, can access its folder, and cannot read the server's files. */
export const checkLocalWorkspaceUser = (config: Config): Finding[] => {
  const { local_workspace_user, data_dir } = config;
  if (local_workspace_user === undefined) return [];
  const title = "local workspace user";
  const failedCheck = (detail: string): Finding[] => [{ name: title, status: "wrong", detail }];
  try {
    const user = findLocalUser(local_workspace_user);
    const listAccessible = (test: string, paths: readonly string[]): string[] =>
      runAs(user, [
        "/bin/sh",
        "-c",
        `for path; do [ -${test} "$path" ] && printf '%s\\n' "$path"; done`,
        "sh",
        ...paths,
      ])
        .split("\n")
        .filter((path) => path !== "");
    const [folder, program] = [dirname(resolve(data_dir)), process.execPath];
    const reachable = listAccessible("x", [folder, program]);
    const unreachable = [folder, program].find((path) => !reachable.includes(path));
    if (unreachable !== undefined) return failedCheck(`${user.name} cannot reach ${unreachable}`);
    const read = listAccessible("r", listSecrets(config));
    if (read.length > 0) return failedCheck(`${user.name} can read ${read.join(", ")}: remove this access`);
    return [{ name: title, status: "ok", detail: `${user.name}, who cannot read the server's files` }];
  } catch (error) {
    if (error instanceof LocalUserError) return failedCheck(error.message);
    throw error;
  }
};

/** Returns the paths with the server's private data. */
const listSecrets = ({ data_dir, config, tls_key_file, backup_dir, home_backup_dir }: Config): string[] => {
  const dataFiles = ["", "encryption.key", "slipway.db", "slipway.db-wal", "backups", "blobs"];
  return [
    ...dataFiles.map((one) => join(resolve(data_dir), one)),
    config,
    tls_key_file,
    backup_dir,
    home_backup_dir,
  ].filter((path) => path !== undefined);
};
