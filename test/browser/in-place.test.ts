// Linking an account in place, in a real browser: from a workspace's form, as an organization administrator.
import { expect } from "bun:test";
import { Client } from "#src/client.ts";
import { FakeProvider } from "#test/api/external-auth/provider.ts";
import { startWith } from "#test/api/external-auth/world.ts";
import { startMcpHost } from "#test/mcp/support.ts";
import { needs, testNeeding } from "#test/support/needs.ts";
import { scaleTimeout } from "#test/support/pace.ts";
import { ADMIN } from "#test/support/server.ts";
import { makeTemplate } from "#test/support/templates.ts";
import { listPageErrors, runStory } from "./story.ts";

const GRACE = { email: "grace@example.com", username: "grace", password: "nine grey herons at noon" };

testNeeding(
  [needs.chromium, needs.node],
  "[WB-81][WB-86][WB-63][WB-4][WB-6] an organization administrator sets headers of an MCP server, and links the account that a template requires without leaving its form",
  async () => {
    using provider = new FakeProvider();
    await using mcp = startMcpHost();
    await using server = await startWith([provider.setting("web")]);
    const admin = await new Client(server.url).signIn(ADMIN.email, ADMIN.password);
    const [organization] = await admin.get<{ id: string }[]>("/api/v2/organizations");
    const resources = [{ name: "dev", agents: [] }];
    const parameters = [
      { name: "size", default: "small", description: "How **big**: [sizes](https://sizes.example.com)" },
    ];
    const manifest = JSON.stringify({ provisioner: "echo", external_auth: [{ id: "web" }], parameters, resources });
    const template = await makeTemplate(admin, manifest);
    await admin.post("/api/v2/users", GRACE);
    const path = `/api/v2/organizations/${organization?.id}/members/grace/roles`;
    await admin.put(path, { roles: ["organization-admin"] });
    const grace = await new Client(server.url).signIn(GRACE.email, GRACE.password);
    const args = [server.url.href, grace.token ?? "", mcp.url, template.name];
    const result = await runStory("in-place.mjs", args, { demote: () => admin.put(path, { roles: [] }) });
    expect(result).toMatchObject({
      problems: [],
      sections: ["Organizations", "MCP servers", "Workers"],
      isCreateDisabled: true,
    });
    expect(result.commands).toContain("mcp-servers");
    expect(result.commands).not.toContain("canary");
    expect(
      mcp.seen.some((headers) => headers.get("x-tide") === "canary-high" && headers.get("x-moon") === "canary-full"),
    ).toBe(true);
    expect(listPageErrors(result)).toEqual([]);
  },
  scaleTimeout(360_000),
);
