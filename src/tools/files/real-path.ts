// Resolves the files of an edit: a symbolic link in the workspace must not redirect an edit that a chat's mode accepts without approval to a
// file that requires approval, nor one that a person approves to a file that the person does not see (rule PE-17).

import { posix } from "node:path";
import { log } from "#base/log.ts";
import { trimEnd } from "#base/text/trim.ts";
import { getPaths, isPlainPath } from "../permission-mode.ts";
import { type ToolAgent, ToolError, WorkspaceUnreachableError } from "../tool.ts";

type Agent = Pick<ToolAgent, "call">;

/**
 * Returns why the edit is refused, as a message for the model; undefined if every file is below the agent's folder and not hidden there.
 */
export const findLinkProblem = (agent: Agent, args: unknown, signal: AbortSignal): Promise<string | undefined> =>
  toMessageOnFailure(signal, async () => {
    const paths = getPaths(args).filter((one) => typeof one === "string");
    const [first] = await findFilesOutside(agent, paths, signal);
    return first && describeOutsideLink(...first);
  });

/** Like `findRedirectProblem`, but also returns a message if the workspace does not answer. For an edit that a person has approved. */
export const findApprovedEditProblem = (
  agent: Agent,
  args: unknown,
  signal: AbortSignal,
): Promise<string | undefined> => toMessageOnFailure(signal, () => findRedirectProblem(agent, args, signal));

const toMessageOnFailure = async (
  signal: AbortSignal,
  find: () => Promise<string | undefined>,
): Promise<string | undefined> => {
  try {
    return await find();
  } catch (error) {
    if (signal.aborted) throw signal.reason;
    if (error instanceof ToolError) return error.message;
    log("chats").error("where an edit leads cannot be found out: {error}", { error });
    return "The workspace did not say where these files are. Nothing was changed.";
  }
};

/** Returns the real paths of the files that are not below the agent's folder, or are hidden there, by the given paths. */
export const findFilesOutside = async (
  agent: Agent,
  paths: readonly string[],
  signal?: AbortSignal,
): Promise<ReadonlyMap<string, string>> => {
  const outside = new Map<string, string>();
  const folder = await requestRealPath(agent, ".", signal);
  for (const path of paths) {
    const real = await resolveRealPath(agent, path, signal);
    if (!isPlainPath(real, folder)) outside.set(path, real);
  }
  return outside;
};

/**
 * Returns why an edit that a person decides about cannot run, as a message for the model: the person sees the path as written, and a link
 * leads elsewhere. Undefined if every path is the real path of its file. Throws `ToolError` if the workspace does not answer.
 */
export const findRedirectProblem = async (
  agent: Agent,
  args: unknown,
  signal: AbortSignal,
): Promise<string | undefined> => {
  for (const path of getPaths(args)) {
    if (typeof path !== "string") continue;
    const real = await resolveRealPath(agent, path, signal);
    if (real !== (await toUnresolvedPath(agent, path, signal)))
      return `"${path}" leads to ${real}, which the person who approves the edit does not see. Nothing was changed. Call again with the path ${real}.`;
  }
  return undefined;
};

/** Returns the path without resolving links below the agent's folder or the home. */
const toUnresolvedPath = async (agent: Agent, path: string, signal: AbortSignal): Promise<string> => {
  const below = (base: string, tail: string): string => posix.join(base, tail).replace(/(?<=.)\/$/, "");
  if (path === "~" || path.startsWith("~/")) return below(await requestRealPath(agent, "~", signal), path.slice(1));
  const folder = await requestRealPath(agent, ".", signal);
  if (!path.startsWith("/")) return below(folder, path);
  // The folder itself may be reached through a link, as where /home is one.
  const parts = posix.normalize(path).split("/").slice(1);
  for (let partCount = 1; partCount < parts.length; partCount += 1) {
    const resolved = await resolveIfExists(agent, `/${parts.slice(0, partCount).join("/")}`, signal);
    if (resolved === folder) return below(folder, parts.slice(partCount).join("/"));
    if (resolved === undefined) break;
  }
  return below("/", parts.join("/"));
};

const describeOutsideLink = (path: string, real: string): string =>
  `"${path}" leads to ${real} through a symbolic link. Edits there need approval, so nothing was changed. Call again with the path ${real}, and a person is asked.`;

/**
 * Returns the path with links resolved; for a new file, the resolved path of its nearest existing folder, followed by the remaining parts.
 */
const resolveRealPath = async (agent: Agent, path: string, signal?: AbortSignal): Promise<string> => {
  const parts = trimEnd(path, "/").split("/");
  for (let partCount = parts.length; partCount > 0; partCount -= 1) {
    const resolved = await resolveIfExists(agent, parts.slice(0, partCount).join("/") || "/", signal);
    if (resolved !== undefined) return [resolved.replace(/\/$/, ""), ...parts.slice(partCount)].join("/");
  }
  const folder = await requestRealPath(agent, ".", signal);
  return [folder, ...parts].join("/");
};

/** Rejects when the workspace does not answer: a file must not count as absent because it could not be read. */
const resolveIfExists = (agent: Agent, path: string, signal?: AbortSignal): Promise<string | undefined> =>
  requestRealPath(agent, path, signal).catch((error: unknown) => {
    if (!(error instanceof ToolError) || error instanceof WorkspaceUnreachableError) throw error;
    return undefined;
  });

const requestRealPath = async (agent: Agent, path: string, signal?: AbortSignal): Promise<string> => {
  const query = new URLSearchParams({ path });
  const agentCall = { method: "GET", path: `/resolve-path?${query}`, patient: true } as const;
  const call = signal ? { ...agentCall, signal } : agentCall;
  return (await agent.call<{ resolved_path: string }>(call)).resolved_path;
};
