// Resolves the files of an edit that a chat's mode accepts without approval: a symbolic link in the workspace must not redirect such an
// edit to a file that requires approval (rule PE-17).
import { log } from "#base/log.ts";
import { isPlainPath, pathsIn } from "../permission-mode.ts";
import { type ToolAgent, ToolError } from "../tool.ts";

type Agent = Pick<ToolAgent, "call">;

/**
 * Returns why the edit is refused, as a message for the model; undefined if every file is below the agent's folder and not hidden there.
 */
export const linkProblem = async (agent: Agent, args: unknown, signal: AbortSignal): Promise<string | undefined> => {
  try {
    const paths = pathsIn(args).filter((one) => typeof one === "string");
    const [first] = await filesAway(agent, paths, signal);
    return first && leadsAway(...first);
  } catch (error) {
    if (signal.aborted) throw signal.reason;
    if (error instanceof ToolError) return error.message;
    log("chats").error("where an edit leads cannot be found out: {error}", { error });
    return "The workspace did not say where these files are. Nothing was changed.";
  }
};

/** Returns the real paths of the files that are not below the agent's folder, or are hidden there, by the given paths. */
export const filesAway = async (
  agent: Agent,
  paths: readonly string[],
  signal?: AbortSignal,
): Promise<ReadonlyMap<string, string>> => {
  const away = new Map<string, string>();
  const folder = await resolved(agent, ".", signal);
  for (const path of paths) {
    const real = await realPath(agent, path, signal);
    if (!isPlainPath(real, folder)) away.set(path, real);
  }
  return away;
};

const leadsAway = (path: string, real: string): string =>
  `"${path}" leads to ${real} through a symbolic link. Edits there need approval, so nothing was changed. Call again with the path ${real}, and a person is asked.`;

/** Returns the path with links resolved; for a new file, that of its nearest existing folder plus the rest. */
const realPath = async (agent: Agent, path: string, signal?: AbortSignal): Promise<string> => {
  const parts = path.replace(/\/+$/, "").split("/");
  for (let kept = parts.length; kept > 0; kept -= 1) {
    const there = await resolved(agent, parts.slice(0, kept).join("/") || "/", signal).catch((error: unknown) => {
      if (!(error instanceof ToolError)) throw error;
      return undefined;
    });
    if (there !== undefined) return [there.replace(/\/$/, ""), ...parts.slice(kept)].join("/");
  }
  const folder = await resolved(agent, ".", signal);
  return [folder, ...parts].join("/");
};

const resolved = async (agent: Agent, path: string, signal?: AbortSignal): Promise<string> => {
  const query = new URLSearchParams({ path });
  const asked = { method: "GET", path: `/resolve-path?${query}`, patient: true } as const;
  const call = signal ? { ...asked, signal } : asked;
  return (await agent.call<{ resolved_path: string }>(call)).resolved_path;
};
