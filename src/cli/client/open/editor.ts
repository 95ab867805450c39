// `slipway open vscode|cursor|jetbrains|… WORKSPACE[.AGENT] [FOLDER]`: opens a workspace in a local editor. --print prints the link. A key
// for the plug-in is created and included only with --with-token, because other users of this machine may see it.

import { EDITORS, type EditorTarget, formatEditorLink, formatGatewayLink } from "#base/links/editor-links.ts";
import type { Client } from "#src/client.ts";
import { readArguments, requireNoWords } from "../../arguments.ts";
import { promptIfMissing, takeOneWord } from "../../missing-arguments.ts";
import type { RunVerb } from "../../verb.ts";
import { withServer } from "../remote.ts";
import { getAgent, getWorkspace, listOwnWorkspaces, splitName } from "../workspaces/find.ts";
import { openInBrowser } from "./browse.ts";

const createVerb =
  (verb: string, formatLink: (target: EditorTarget) => string): RunVerb =>
  async (input) => {
    const { words, value, has } = readArguments(input.argv, { switches: ["print", "with-token"] });
    const [first, folder, ...more] = words;
    requireNoWords(more);
    const word = takeOneWord(input, first === undefined ? [] : [first], "the workspace");
    return withServer(`open ${verb}`, input, value, async ({ client }) => {
      const name = await promptIfMissing(input, word, "Workspace", () => listOwnWorkspaces(client));
      const [workspaceName, agentName] = splitName(name);
      const workspace = await getWorkspace(client, workspaceName);
      const agent = getAgent(workspace, agentName);
      const target = {
        url: client.url,
        owner: workspace.owner_name,
        workspace: workspace.name,
        agent: agent.name,
        folder: folder ?? (agent.expanded_directory || undefined),
      };
      const link = formatLink({ ...target, token: has["with-token"] ? await createKey(client, agent.id) : undefined });
      if (has.json) input.print(JSON.stringify({ link }));
      else if (has.print) input.print(link);
      else await openInBrowser(link, formatLink({ ...target, token: undefined }));
    });
  };

/** Creates a key for this workspace only. It expires with the session or token used here. */
const createKey = async (client: Client, agent_id: string): Promise<string> =>
  (await client.post(`/api/v2/workspaceagents/${agent_id}/keys`)).key;

/** The commands, by the scheme of their links. */
export const editors = Object.fromEntries(
  EDITORS.map((editor) => [editor, createVerb(editor, (target) => formatEditorLink(editor, target))]),
) as Record<(typeof EDITORS)[number], RunVerb>;

export const jetbrains = createVerb("jetbrains", formatGatewayLink);
