// Files that are dropped on a terminal: they go to the folder it is in.
import { Problem } from "../../data/api.ts";
import { ask } from "../../parts/dialog.tsx";
import { failed, say } from "../../shell/toasts.tsx";

const send = async (agent: string, terminal: string, file: File, replace: boolean): Promise<string> => {
  const query = new URLSearchParams({ name: file.name, terminal, replace: String(replace) });
  const response = await fetch(`/api/v2/workspaceagents/${agent}/files?${query}`, {
    method: "POST",
    body: file,
    headers: { "content-type": "application/octet-stream" },
  });
  const answer = (await response.json().catch(() => ({}))) as { path?: string; message?: string; detail?: string };
  if (answer.path) return answer.path;
  const words = [answer.message, answer.detail].filter(Boolean).join(" ") || `The server answered ${response.status}.`;
  throw new Problem(response.status, { message: `${file.name}: ${words}` });
};

/** Uploads them one after the other; asks before one takes the place of another. */
export const uploadFiles = async (agent: string, terminal: string, files: readonly File[]): Promise<void> => {
  for (const file of files) {
    const bring = async (replace: boolean): Promise<void> =>
      say(`Uploaded ${await send(agent, terminal, file, replace)}`);
    try {
      await bring(false);
    } catch (error) {
      if (!(error instanceof Problem) || error.status !== 409) failed(error);
      else {
        ask({
          title: `Replace ${file.name}?`,
          text: "The folder of this terminal has a file of this name.",
          yes: "Replace file",
          no: "Keep it",
          isDanger: true,
          act: () => bring(true),
        });
      }
    }
  }
};
