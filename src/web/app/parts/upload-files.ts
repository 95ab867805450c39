// Uploads files that are dropped on a terminal, into its current folder, or on a folder.
import { Problem } from "../data/api.ts";
import { showError, showToast } from "../shell/toasts.tsx";
import { confirmAction } from "./dialog.tsx";

/** The destination of the files. */
export type Target = { readonly terminal: string } | { readonly folder: string };

const sendFile = async (agent: string, target: Target, file: File, replace: boolean): Promise<string> => {
  const query = new URLSearchParams({ name: file.name, replace: String(replace), ...target });
  const response = await fetch(`/api/v2/workspaceagents/${agent}/files?${query}`, {
    method: "POST",
    body: file,
    headers: { "content-type": "application/octet-stream" },
  });
  const answer = (await response.json().catch(() => ({}))) as { path?: string; message?: string; detail?: string };
  if (answer.path) return answer.path;
  const text = [answer.message, answer.detail].filter(Boolean).join(" ") || `The server answered ${response.status}.`;
  throw new Problem(response.status, { message: `${file.name}: ${text}` });
};

/** Uploads the files one after another, and asks before overwriting one. Calls `onUploaded` for each uploaded file. */
export const uploadFiles = async (
  agent: string,
  target: Target,
  files: readonly File[],
  onUploaded: () => unknown = () => undefined,
): Promise<void> => {
  for (const file of files) {
    const uploadFile = async (replace: boolean): Promise<void> => {
      const path = await sendFile(agent, target, file, replace);
      // The target folder is visible on the page; a terminal's folder is not, so its path is shown.
      showToast(`Uploaded ${"folder" in target ? file.name : path}`);
      onUploaded();
    };
    try {
      await uploadFile(false);
    } catch (error) {
      if (!(error instanceof Problem) || error.status !== 409) showError(error);
      else {
        const place = "terminal" in target ? "The folder of this terminal" : "This folder";
        confirmAction({
          title: `Replace ${file.name}?`,
          text: `${place} already has a file with this name.`,
          confirmLabel: "Replace file",
          cancelLabel: "Keep it",
          isDanger: true,
          act: () => uploadFile(true),
        });
      }
    }
  }
};
