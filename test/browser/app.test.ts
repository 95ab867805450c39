// The app in a real browser, on a real server with real workspaces. One browser and one server for the whole story.
import { expect } from "bun:test";
import { createChat } from "#test/support/chats.ts";
import { ScriptedModels } from "#test/support/models/scripted-models.ts";
import { needs, testNeeding } from "#test/support/needs.ts";
import { scaleTimeout } from "#test/support/pace.ts";
import { ADMIN } from "#test/support/server.ts";
import { awaitBuild, createWorkspace, openWorld, seedTemplate } from "#test/support/workspaces.ts";
import { runStory } from "./story.ts";

/**
 * Returns the paths of pages, each with the requests that it may send only after another response, because they are for content below the
 * fold or depend on that response (a build, a version, an organization).
 */
const listPages = ({ workspace, chat, template, agent }: Readonly<Record<string, string>>) => [
  ["/", "/chats/models", "/chats/providers/local", "/users?limit=1", "/invitations"],
  ["/workspaces"],
  [`/workspaces/${workspace}`, "/workspacebuilds/*"],
  ...["builds", "logs", "schedule"].map((tab) => [`/workspaces/${workspace}/${tab}`]),
  [`/workspaces/${workspace}/parameters`, "/workspacebuilds/*"],
  [`/workspaces/${workspace}/sharing`, "/users?q=&limit=20", "/organizations/*"],
  ["/new", "/templateversions/*", "/repositories"],
  [`/new?template=${template}`, "/templateversions/*"],
  ["/chats", "/chats/models", "/chats/providers/local"],
  [`/chats/${chat}`, `/chats/${chat}/cost`],
  ["/tasks"],
  ["/terminals"],
  [`/terminals/${agent}`],
  ["/templates", "/templates/examples"],
  ...["", "/versions", "/settings"].map((tab) => [`/templates/${template}${tab}`]),
  [`/templates/${template}/variables`, "/templateversions/*"],
  [`/templates/${template}/files`, "/files/*"],
  [`/templates/${template}/insights`, "/insights/*"],
  [`/templates/${template}/access`, "/users?q=&limit=20", "/organizations/*"],
  ...["", "/builds", "/chats?days=7", "/latency?zone=utc"].map((tab) => [`/insights${tab}`, "/chats/cost/users*"]),
  ["/audit"],
  ["/audit?q=action%3Acreate"],
  ["/connections"],
  ["/admin"],
  ...[
    ...["people", "organizations", "organizations/default", "models", "external-accounts", "permissions", "budgets"],
    ...["hooks", "health", "settings", "backups", "logs"],
  ].map((tab) => [`/admin/${tab}`]),
  ...["mcp-servers", "workers"].map((tab) => [`/admin/${tab}`, "/organizations/*"]),
  ["/admin/appearance"],
  ["/account"],
  ...["security", "sessions", "tokens", "accounts", "secrets", "skills", "notifications", "permissions"].map((tab) => [
    `/account/${tab}`,
  ]),
  ["/docs"],
  ["/docs/chats"],
];

testNeeding(
  [needs.chromium, needs.node],
  "[WB-76] [WB-88] [WB-80] [WB-85] [WB-4] [WB-6] [WB-68] [WB-69] [WB-77] [PG-4] [PG-5] a person finds, stops and pins workspaces; each page is accessible, obeys the content policy, and requests its data before its code",
  async () => {
    const models = new ScriptedModels();
    await using world = await openWorld({ models });
    const { template_id, organization_id } = await seedTemplate(world.server);
    const ids: string[] = [];
    for (const name of ["alpha", "beta"]) {
      const { id } = await createWorkspace(world.admin, template_id, name);
      const { latest_build } = await awaitBuild(world.admin, id);
      ids.push(id, latest_build.resources[0]?.agents[0]?.id ?? "");
    }
    const chat = await createChat({ owner: world.admin, organization_id }, "What is it?");
    (await models.next()).say("**It** is that.").finish();
    const [workspace = "", agent = ""] = ids;
    const pages = listPages({ workspace, agent, chat: chat.id, template: template_id });
    const args = [world.server.url.href, ADMIN.email, ADMIN.password, ids[2] ?? "", JSON.stringify(pages)];
    const { requests, consoleErrors, ...result } = await runStory("app.mjs", args);
    expect(result).toMatchObject({
      problems: [],
      filtered: ["alpha"],
      address: "owner:me alph",
      badRequests: [],
      layers: 0,
      keepsFocus: true,
      pressed: { pressed: ["/chats//messages?limit=40", "/chats/", "/chats/models", "/chats//trials"], twice: [] },
      retriedSockets: [],
      writable: 0,
    });
    expect(result.names).toEqual(expect.arrayContaining(["alpha", "beta"]));
    expect(result.command).toBe("slipway workspaces favorite admin/alpha");
    expect(result.curl).toContain("/api/v2/workspaces/");
    expect(requests.filter((url) => !url.startsWith(world.server.url.origin) && !url.startsWith("data:"))).toEqual([]);
    expect(consoleErrors.filter((text) => !text.startsWith("Failed to load resource"))).toEqual([]);
  },
  scaleTimeout(300_000),
);
