// What `slipway doctor` says of local workspaces: whether they are offered, to whom, and what that means.
import { type Config, onlyThisMachine, signsOfOthers } from "#base/config.ts";
import type { Finding } from "./doctor-checks.ts";

const name = "local workspaces";

/** One line; a warning where somebody beyond this machine's people may get the rights of the server's user. */
export const localWorkspaces = (config: Config): Finding => {
  const isAlone = onlyThisMachine(config);
  if (!isAlone && !config.allow_local_provisioner_off_loopback) {
    return { name, status: "ok", detail: `not offered, because ${signsOfOthers(config).join(" and ")}` };
  }
  const who = config.allow_local_provisioner_for_members ? "everybody with an account" : "owners of the deployment";
  const detail = `offered to ${who}, who can do with them whatever the server's user can`;
  return { name, status: isAlone && !config.allow_local_provisioner_for_members ? "ok" : "warn", detail };
};
