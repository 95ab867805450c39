// The data that the server includes in a page of the app.
import { expect, test } from "bun:test";
import { usesActiveNodes } from "#test/support/cluster/active-nodes.ts";
import { forFile } from "#test/support/for-file.ts";
import { ADMIN } from "#test/support/server.ts";
import { until } from "#test/support/until.ts";
import { awaitBuild, createBuild, createWorkspace, openWorld, seedTemplate } from "#test/support/workspaces.ts";

const { server, admin } = await forFile(openWorld());
const token = admin.token ?? "";
const { template_id } = await seedTemplate(server);

type FirstAnswers = {
  readonly answers: Readonly<Record<string, { readonly name?: string }>>;
  readonly heard: Readonly<Record<string, string>>;
};

const getPage = (path: string, headers: Record<string, string> = {}): Promise<Response> =>
  fetch(new URL(path, server.url), { headers });

const adminHeaders = { cookie: `service_session_token=${token}` };

const parseFirst = (html: string): FirstAnswers | undefined => {
  const [, json] = /<script type="application\/json" id="first">(.*?)<\/script>/s.exec(html) ?? [];
  return json === undefined ? undefined : (JSON.parse(json) as FirstAnswers);
};

test("[WB-77] Home includes the templates while its user has no workspace", async () => {
  const getTemplates = async (path: string): Promise<unknown> => {
    const { answers } = await until(async () => parseFirst(await (await getPage(path, adminHeaders)).text()));
    return answers["GET /templates"];
  };
  expect(await getTemplates("/")).toEqual((await (await getPage("/api/v2/templates", adminHeaders)).json()) as object);
  expect(await getTemplates("/workspaces")).toBeUndefined();
  const { id } = await createWorkspace(admin, template_id, "first");
  await awaitBuild(admin, id);
  expect(await getTemplates("/")).toBeUndefined();
  await createBuild(admin, id, "delete");
  await awaitBuild(admin, id);
  expect(await getTemplates("/")).toBeDefined();
});

test("[WB-77] a page includes its user's identity and the data of their lists, and is never cached", async () => {
  const { id } = await createWorkspace(admin, template_id, "alpha");
  await awaitBuild(admin, id);
  const page = await getPage("/workspaces", { ...adminHeaders, "accept-encoding": "br, gzip" });
  expect(page.headers.get("cache-control")).toBe("no-store");
  expect(page.headers.get("etag")).toBeNull();
  expect(page.headers.get("content-encoding")).toBe("gzip");
  expect(await page.text()).toContain("</html>");
  // A busy server sends the page without the data rather than late.
  const { answers, heard } = await until(async () =>
    parseFirst(await (await getPage("/workspaces", adminHeaders)).text()),
  );
  for (const address of ["/users/me", "/organizations", "/users/me/roles", "/chats?limit=100"])
    expect(answers[`GET ${address}`]).toEqual(
      (await (await getPage(`/api/v2${address}`, adminHeaders)).json()) as object,
    );
  const list = JSON.parse(heard["/workspaces/watch"] ?? "{}");
  expect(list).toMatchObject({ type: "snapshot", workspaces: [{ id, name: "alpha" }], more: false });

  // The stream continues from that snapshot. With several active nodes, another node may start with a new snapshot.
  const secondWorkspace = await createWorkspace(admin, template_id, "beta");
  const abort = new AbortController();
  const address = `/api/v2/workspaces/watch?after_id=${encodeURIComponent(list.id)}`;
  const stream = await fetch(new URL(address, server.url), {
    headers: { "Service-Session-Token": token },
    signal: abort.signal,
  });
  let message = "";
  for await (const bytes of stream.body ?? []) {
    message += new TextDecoder().decode(bytes);
    if (message.includes(secondWorkspace.id)) break;
  }
  abort.abort();
  expect(message).toMatch(usesActiveNodes ? /"type":"(changes|snapshot)"/ : /"type":"changes"/);
});

test("[WB-77] anonymous callers, keys in a URL, and sign-in pages get the page without data", async () => {
  for (const [path, headers] of [
    ["/", {}],
    ["/", { cookie: "service_session_token=abcdefghij-abcdefghijabcdefghijab" }],
    ["/", { "Service-Session-Token": token }],
    [`/?service_session_token=${token}`, {}],
    ["/login", adminHeaders],
  ] as const) {
    const page = await getPage(path, headers);
    expect(page.headers.get("cache-control")).toBe("no-cache");
    expect(parseFirst(await page.text())).toBeUndefined();
  }
});

test("[WB-77] text from a user cannot inject a script into the page", async () => {
  const name = "</script><script>alert(1)</script>";
  await admin.put("/api/v2/users/me/profile", { username: ADMIN.username, name });
  const html = await until(async () => {
    const text = await (await getPage("/", adminHeaders)).text();
    return parseFirst(text) && text;
  });
  expect(html).not.toContain(name);
  expect(parseFirst(html)?.answers["GET /users/me"]?.name).toBe(name);
});
