// Previews a call before it runs: the diff of an edit against the current files, or a command with its parts and its folder. Changes
// nothing in the workspace.

import { normalize } from "node:path/posix";
import { trimEnd } from "#base/text/trim.ts";
import type { EditedFiles, PreviewFiles } from "#schema/agents/agent-files.ts";
import type { ChatApproval } from "#schema/chats/chat-approval.ts";
import { getCommand, getShellFolders, UNKNOWN_FOLDER } from "./permission-mode.ts";
import { listCommandTexts } from "./processes/parsed-commands.ts";
import { type ToolAgent, ToolError, WorkspaceUnreachableError } from "./tool.ts";

export type CallPreview = Pick<ChatApproval, "files" | "command" | "problem">;

type PreviewedCall = {
  readonly tool_name: string;
  readonly args: unknown;
};

/** Maximum size of the diffs of one call. */
const MAX_DIFF_BYTES = 262_144;

/** Returns the preview. `folder` is the agent's; empty if unknown. Rejects only with the signal's reason. */
export const previewCall = async (
  agent: Pick<ToolAgent, "call">,
  call: PreviewedCall,
  folder: string,
  signal: AbortSignal,
): Promise<CallPreview> => {
  if (call.tool_name === "execute") return { command: previewCommand(call.args, folder) };
  const edit = toPreviewFiles(call);
  if (edit === undefined) return {};
  try {
    return { files: truncateDiffs(await previewEdit(agent, edit, signal)) };
  } catch (error) {
    if (error instanceof ToolError) return { problem: error.message };
    throw error;
  }
};

/** Returns the edit of a call in the daemon's format; undefined for other tools. */
export const toPreviewFiles = ({ tool_name, args }: PreviewedCall): PreviewFiles | undefined => {
  const parsedArgs = (args ?? {}) as { path: string; content: string; files: PreviewFiles["files"] };
  const { path, content, files } = parsedArgs;
  if (tool_name === "write_file") return { write: { path, content } };
  return tool_name === "edit_files" ? { files } : undefined;
};

/** Returns the diffs of an edit. Throws the edit's own `ToolError` if it does not apply, or if the workspace is unreachable. */
export const previewEdit = async (
  agent: Pick<ToolAgent, "call">,
  json: PreviewFiles,
  signal: AbortSignal,
): Promise<EditedFiles["files"]> => {
  try {
    const { files } = await agent.call<EditedFiles>({ method: "POST", path: "/preview-files", json, signal });
    return files;
  } catch (error) {
    const isOlder = error instanceof ToolError && error.message.startsWith("Route not found.");
    throw isOlder
      ? new WorkspaceUnreachableError("The workspace runs an older agent, which shows no diff. Restart it.")
      : error;
  }
};

const truncateDiffs = (files: EditedFiles["files"]): ChatApproval["files"] => {
  let remainingBytes = MAX_DIFF_BYTES;
  return files.map(({ path, diff, is_new = false }) => {
    const shown = diff.slice(0, remainingBytes);
    remainingBytes -= shown.length;
    // The path as it is used: a long detour through folders would hide where the file is.
    return { path: normalize(path), diff: shown, is_new };
  });
};

const resolveShown = (named: string, folder: string): string =>
  /^[/~]/.test(named) || named === UNKNOWN_FOLDER
    ? named
    : [trimEnd(folder, "/"), named.replace(/^\.\//, "")].filter((part) => part !== "").join("/");

const previewCommand = (args: unknown, folder: string): ChatApproval["command"] => {
  const parsedArgs = (args ?? {}) as { workdir?: unknown; run_in_background?: unknown };
  const workdir = typeof parsedArgs.workdir === "string" ? parsedArgs.workdir : "";
  const text = getCommand(args);
  const folders = [workdir, ...getShellFolders(args)].map((one) => resolveShown(one, folder));
  return {
    text,
    folder: folders.filter((one) => one !== "").join(" or "),
    parts: listCommandTexts(text),
    in_background: parsedArgs.run_in_background === true,
  };
};
