// `slipway open app WORKSPACE[.AGENT] [APP]`: opens an app of a workspace in the browser, or in the program for its link after confirmation.
import { EDITOR_SCHEMES } from "#base/links/external-link.ts";
import { readArguments, requireNoWords } from "../../arguments.ts";
import { VerbFailure } from "../../failure.ts";
import { promptIfMissing, requireConfirmable, requireConfirmation, takeOneWord } from "../../missing-arguments.ts";
import { toPlainLine } from "../../text.ts";
import type { RunVerb, VerbInput } from "../../verb.ts";
import { withServer } from "../remote.ts";
import { getWorkspace, listAgents, listOwnWorkspaces, splitName, toAppUrl } from "../workspaces/find.ts";
import { openInBrowser } from "./browse.ts";

export const run: RunVerb = async (input) => {
  const { words, value, has } = readArguments(input.argv, { switches: ["print", "yes"], short: { y: "yes" } });
  const [first, slug, ...more] = words;
  requireNoWords(more);
  const word = takeOneWord(input, first === undefined ? [] : [first], "the workspace");
  const app = takeOneWord(input, slug === undefined ? [] : [slug], "the app, by its slug");
  return withServer("open app", input, value, async ({ client }) => {
    const name = await promptIfMissing(input, word, "Workspace", () => listOwnWorkspaces(client));
    const [workspaceName, agentName] = splitName(name);
    const workspace = await getWorkspace(client, workspaceName);
    const all = listAgents(workspace)
      .filter((agent) => agentName === undefined || agent.name === agentName)
      .flatMap((agent) => agent.apps.map((one) => ({ agent, app: one })));
    const slugs = all.map((one) => one.app.slug);
    const wantedSlug = await promptIfMissing(input, app, "App", async () => slugs);
    const found = all.find((one) => one.app.slug === wantedSlug);
    if (!found) {
      const available = slugs.length > 0 ? `it has ${slugs.map(toPlainLine).join(", ")}` : "it has no apps";
      throw new VerbFailure(`${workspaceName} has no app ${wantedSlug}; ${available}`);
    }
    const { host, external_app_schemes = [] } = await client.get("/api/v2/applications/host");
    const link = toAppUrl(workspace, found.agent, found.app, { server: client.url, host });
    // The template's author controls this URL: reject schemes that read local files or contain code.
    if (!URL.canParse(link) || /^(file|javascript|data|vbscript):/i.test(new URL(link).protocol)) {
      throw new VerbFailure(`${wantedSlug} has a URL that cannot be opened: ${toPlainLine(link)}`);
    }
    if (has.json) input.print(JSON.stringify({ link }));
    else if (has.print) input.print(toPlainLine(link));
    else {
      // The server's list only shortens the program's own: a server must not choose which programs start without a question.
      const scheme = new URL(link).protocol.slice(0, -1);
      const isEditor = EDITOR_SCHEMES.includes(scheme) && external_app_schemes.includes(scheme);
      const isTrusted = scheme === "http" || scheme === "https" || isEditor;
      if (!isTrusted && !has.yes) await confirmProgram(input, link);
      await openInBrowser(link);
    }
  });
};

/** Asks before a program of this machine gets the link, as a browser does. Throws UsageError without a terminal. */
const confirmProgram = async (input: VerbInput, link: string): Promise<void> => {
  requireConfirmable(input, false, "opened");
  await requireConfirmation(
    input,
    `This starts a program on your machine with the link ${toPlainLine(link)}. Open it?`,
  );
};
