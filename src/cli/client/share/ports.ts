// `slipway share ports WORKSPACE` and `slipway share port WORKSPACE[.AGENT] PORT --to LEVEL [--https]`: shows or sets who can open a
// workspace's ports.
import { usageError } from "#base/usage-error.ts";
import { type PortShare, SHARE_LEVELS, type ShareLevel } from "#schema/workspaces/port-share.ts";
import { readArguments } from "../../arguments.ts";
import { formatTable } from "../../options.ts";
import { toPlainLine } from "../../text.ts";
import type { RunVerb } from "../../verb.ts";
import { withServer } from "../remote.ts";
import { getAgent, getWorkspace, selectWorkspace, splitName } from "../workspaces/find.ts";

export const list: RunVerb = async (input) => {
  const { words, value, has } = readArguments(input.argv);
  const findWorkspace = selectWorkspace(input, words);
  return withServer("share ports", input, value, async ({ client }) => {
    const { id } = await findWorkspace(client);
    const found = await client.get(`/api/v2/workspaces/${id}/port-share`);
    input.print(has.json ? JSON.stringify(found) : formatShares(found.shares));
  });
};

export const change: RunVerb = async (input) => {
  const { words, value, has } = readArguments(input.argv, { values: ["to"], switches: ["https"] });
  const [name, number, ...more] = words;
  if (name === undefined || number === undefined || more.length > 0) {
    throw usageError("share port", "expected a workspace and a port");
  }
  const share_level = parseLevel(value.to);
  const port = parsePort(number);
  return withServer("share port", input, value, async ({ client }) => {
    const [workspaceName, agent] = splitName(name);
    const workspace = await getWorkspace(client, workspaceName);
    const path = `/api/v2/workspaces/${workspace.id}/port-share` as const;
    const target = { agent_name: getAgent(workspace, agent).name, port };
    if (share_level === "owner") await client.delete(path, target);
    else await client.post(path, { ...target, share_level, protocol: has.https ? "https" : "http" });
    const found = await client.get(path);
    input.print(has.json ? JSON.stringify(found) : formatShares(found.shares));
  });
};

const parseLevel = (text: string | undefined): ShareLevel => {
  const level = SHARE_LEVELS.find((one) => one === text);
  if (level === undefined) throw usageError("--to", `expected ${SHARE_LEVELS.join(", ")}`);
  return level;
};

const parsePort = (text: string): number => {
  if (!/^\d{1,5}$/.test(text)) throw usageError("share port", `${text} is not a port`);
  return Number(text);
};

/** Formats one row for each port. */
const formatShares = (shares: readonly PortShare[]): string =>
  shares.length === 0
    ? "No ports are shared."
    : formatTable(
        ["PORT", "AGENT", "PROTOCOL", "ACCESS"],
        shares.map((one) => [String(one.port), toPlainLine(one.agent_name), one.protocol, one.share_level]),
      );
