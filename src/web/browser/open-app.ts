// Asks the owner of a workspace before an external app of its template gets a key, and shows where the key would be sent. Opening the page
// creates nothing.
import { canGetKey, KEY_PLACEHOLDER, parseLinkTarget, withKey } from "#base/links/external-link.ts";
import type { ExternalLink } from "#schema/users/application.ts";
import { call } from "./api.ts";
import { createElement, getElement, onSubmit, requireSession, runPage, showDone } from "./page.ts";

/** The fields of a workspace that the page uses. */
type Workspace = {
  readonly name: string;
  readonly latest_build: {
    readonly resources: readonly {
      readonly agents: readonly {
        readonly id: string;
        readonly name: string;
        readonly parent_id: { readonly valid: boolean };
        readonly apps: readonly {
          readonly slug: string;
          readonly display_name: string;
          readonly external: boolean;
          readonly url: string;
        }[];
      }[];
    }[];
  };
};

/** Loads the app that the query names. Throws if the app does not exist or gets no key. */
const findApp = async () => {
  const query = new URLSearchParams(location.search);
  const workspace = await call<Workspace>("GET", `/workspaces/${encodeURIComponent(query.get("workspace") ?? "")}`);
  const agents = workspace.latest_build.resources.flatMap((one) => one.agents);
  const agent = agents.find(({ name }) => name === query.get("agent"));
  const app = agent?.apps.find(({ slug }) => slug === query.get("app"));
  if (!agent || !app) throw new Error("The workspace has no such app. Start the workspace, then try again.");
  const target = parseLinkTarget(app.url);
  if (!canGetKey(agent, app) || !target)
    throw new Error("This app doesn't receive a session key. Open it from the workspace's page.");
  return { workspace, agent, app, target };
};

/** Opens the link, which the browser passes to the program. */
const openLink = (link: string, name: string): void => {
  location.assign(link);
  showDone(`Opening ${name}. If nothing happens, install the program on this computer.`);
};

runPage(async () => {
  await requireSession();
  const { workspace, agent, app, target } = await findApp();
  const { scheme, authority, hosts } = target;
  const name = app.display_name || app.slug;
  getElement("title").textContent = `Open ${name}?`;
  document.title = `Open ${name} · Slipway`;
  getElement("workspace").textContent = workspace.name;
  getElement("program").textContent = authority ? `${scheme} (${authority})` : scheme;
  getElement("hosts").append(...(hosts.length > 0 ? hosts : ["none"]).map((host) => createElement("li", {}, host)));
  getElement("foreign").hidden = hosts.every((host) => host === location.host);
  getElement("link").textContent = app.url.replaceAll(KEY_PLACEHOLDER, "…");
  getElement("without").onclick = () => openLink(withKey(app.url, ""), name);
  onSubmit(async () => {
    const { url } = await call<ExternalLink>("POST", `/workspaceagents/${agent.id}/apps/${app.slug}/link`);
    openLink(url, name);
  });
  getElement("request").hidden = false;
});
