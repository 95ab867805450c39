// Findings about home backups: about the settings for `slipway doctor`, and about existing backups on the running server.
import { resolve } from "node:path";
import { type Clock, systemClock } from "#base/clock.ts";
import type { Config } from "#base/config.ts";
import { finishesWithin } from "#base/retry.ts";
import type { HomeBackupReport } from "#schema/workspaces/home-backup.ts";
import { HomeBackupError } from "#src/home-backups/error.ts";
import { HomeBackupStore } from "#src/home-backups/store.ts";
import type { Finding } from "./finding.ts";

const name = "home backups";
const MAX_NAMED = 5;
const RESPONSE_TIMEOUT_MS = 10_000;

type Env = Readonly<Record<string, string | undefined>>;

/** Checks whether the target is writable and the backup program is installed. */
export const checkHomeBackupTarget = async (config: Config, env: Env, clock: Clock = systemClock): Promise<Finding> => {
  // The key is not needed to check whether the target is writable.
  const store = HomeBackupStore.open({ config, clock, path: env.PATH, recovery_key: "" });
  if (!store) return { name, status: "ok", detail: "off; set home_backup_dir or home_backup_s3_bucket" };
  const { url } = store.storage;
  try {
    const engine = await store.chooseEngine();
    const checking = store.storage.check();
    // The check may still fail after the timeout.
    checking.catch(() => {});
    if (!(await finishesWithin(clock, RESPONSE_TIMEOUT_MS, checking))) {
      return { name, status: "wrong", detail: `${url} does not respond within ${RESPONSE_TIMEOUT_MS / 1000} seconds` };
    }
    const format = engine === "restic" ? "by restic" : "as archives";
    if (config.home_backup_interval === undefined) {
      return { name, status: "warn", detail: `created only on request, ${format} in ${url}; set home_backup_interval` };
    }
    const { home_backup_s3_endpoint: endpoint, home_backup_dir, data_dir } = config;
    if (endpoint?.protocol === "http:" && !/^(127\.|localhost$|\[::1\]$)/.test(endpoint.hostname)) {
      return {
        name,
        status: "warn",
        detail: `home_backup_s3_endpoint is http: backups are encrypted, but could be altered in transit`,
      };
    }
    if (home_backup_dir !== undefined && isInside(home_backup_dir, data_dir)) {
      return {
        name,
        status: "warn",
        detail: `in the data directory: if it is lost, so are the backups. Set home_backup_dir to a folder on another disk`,
      };
    }
    return { name, status: "ok", detail: `created ${format} in ${url}, which is writable` };
  } catch (error) {
    if (!(error instanceof HomeBackupError)) throw error;
    return { name, status: "wrong", detail: error.message };
  }
};

/** Returns a finding for workspaces whose backups are missing, old or damaged. Pure. */
export const checkHomeBackups = ({ workspaces }: HomeBackupReport): Finding[] => {
  const failing = workspaces.filter(({ problem }) => problem !== "");
  if (failing.length === 0) return [];
  const named = failing.slice(0, MAX_NAMED).map((one) => `${one.owner_name}/${one.workspace_name}: ${one.problem}`);
  const more = failing.length > MAX_NAMED ? ` And ${failing.length - MAX_NAMED} more.` : "";
  return [{ name, status: "wrong", detail: `${named.join(" ")}${more}` }];
};

const isInside = (folder: string, parent: string): boolean => `${resolve(folder)}/`.startsWith(`${resolve(parent)}/`);
