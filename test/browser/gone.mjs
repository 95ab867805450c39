// Administration dialogs for objects that someone else deletes while they are open: each closes, says so, and its list is up to date. node
// gone.mjs CHROMIUM URL TOKEN MODELS
import { playInApp } from "./app-page.mjs";

const [file, url, token, models] = process.argv.slice(2);

await playInApp({ file, url, token }, async ({ page, result, toUrl }) => {
  const dialog = page.getByRole("dialog");
  await page.goto(toUrl("/admin"));
  const api = async (method, path, body) => {
    const { status, text } = await page.evaluate(
      async ([httpMethod, apiPath, requestBody]) => {
        const headers = { "content-type": "application/json" };
        const response = await fetch(`/api/v2${apiPath}`, {
          method: httpMethod,
          headers,
          body: requestBody && JSON.stringify(requestBody),
        });
        return { status: response.status, text: await response.text() };
      },
      [method, path, body],
    );
    if (status >= 400) throw new Error(`${method} ${path}: ${status} ${text}`);
    return text === "" ? undefined : JSON.parse(text);
  };
  const createUser = (username) =>
    api("POST", "/users", { username, email: `${username}@example.com`, password: "four quiet harbours at night" });
  const openMenuItem = async (name, item) => {
    const moreButton = page.getByRole("button", { name: `More for ${name}` });
    // Items with an ellipsis are in the menu, the others next to it.
    if (item.endsWith("…")) await moreButton.click();
    const container = item.endsWith("…") ? page : page.getByRole("listitem").filter({ has: moreButton });
    await container.getByRole("button", { name: item }).click();
    await dialog.waitFor();
  };
  result.closedDialogs = [];
  /** Opens the dialog, deletes its object in the meantime, and clicks. */
  const deleteWhileOpen = async ({ where, name, item, fill = async () => {}, remove, press }) => {
    await page.goto(toUrl(where));
    await openMenuItem(name, item);
    await fill();
    await remove();
    await dialog.getByRole("button", { name: press }).click();
    await page
      .getByRole("status")
      .filter({ hasText: /no longer exists/ })
      .waitFor();
    await dialog.waitFor({ state: "detached" });
    await page.getByRole("button", { name: `More for ${name}` }).waitFor({ state: "detached" });
    result.closedDialogs.push(`${name} ${item}`);
  };

  for (const [name, item, press, fill] of [
    ["ada", "Roles…", "Set roles"],
    [
      "ben",
      "Set password…",
      "Set password",
      () => dialog.getByLabel("New password").fill("four quiet harbours at night"),
    ],
    ["cy", "Delete…", "Delete user"],
  ]) {
    const { id } = await createUser(name);
    await deleteWhileOpen({ where: "/admin", name, item, fill, press, remove: () => api("DELETE", `/users/${id}`) });
  }

  const groups = "/organizations/default/groups";
  for (const [name, item, press] of [
    ["crew", "Edit…", "Save group"],
    ["deck", "Delete…", "Delete group"],
  ]) {
    const { id } = await api("POST", groups, { name });
    const where = "/admin/organizations/default";
    await deleteWhileOpen({ where, name, item, press, remove: () => api("DELETE", `/groups/${id}`) });
  }

  const createProvider = (display_name) =>
    api("POST", "/chats/providers", { provider: "openai-compat", display_name, base_url: `${models}/v1` });
  const { id } = await createProvider("Kept");
  const createModel = (display_name) =>
    api("POST", "/chats/model-configs", { provider_id: id, model: "qwen3-coder:30b", display_name });
  for (const [name, item, press] of [
    ["Priced", "Price…", "Save price"],
    ["Old", "Remove…", "Remove model"],
  ]) {
    const created = await createModel(name);
    const fill = async () => {
      if (item !== "Price…") return;
      await dialog.getByLabel("Input, per million tokens", { exact: true }).fill("1");
      await dialog.getByLabel("Output, per million tokens", { exact: true }).fill("2");
    };
    const remove = () => api("DELETE", `/chats/model-configs/${created.id}`);
    await deleteWhileOpen({ where: "/admin/models", name, item, fill, press, remove });
  }
  for (const [name, item, press, fill] of [
    ["Keyed", "Replace key…", "Replace key"],
    ["Fed", "Add model", "Test and add model", () => dialog.getByLabel("Model", { exact: true }).fill("one")],
  ]) {
    const created = await createProvider(name);
    const remove = () => api("DELETE", `/chats/providers/${created.id}`);
    await deleteWhileOpen({ where: "/admin/models", name, item, fill, press, remove });
  }

  const [{ id: organization }] = await api("GET", "/organizations");
  const servers = `/organizations/${organization}/mcp-servers`;
  for (const [name, item, press] of [
    ["Tide", "Edit…", "Save and try"],
    ["Moon", "Remove…", "Remove MCP server"],
  ]) {
    const body = {
      slug: name.toLowerCase(),
      display_name: name,
      url: "https://mcp.example.com/",
      transport: "streamable_http",
      auth_type: "none",
    };
    const created = await api("POST", servers, body);
    await deleteWhileOpen({
      where: "/admin/mcp-servers",
      name,
      item,
      press,
      remove: () => api("DELETE", `${servers}/${created.id}`),
    });
  }

  for (const [name, item, press] of [["Board", "Edit…", "Save application"]]) {
    const created = await api("POST", "/oauth2-provider/apps", {
      name,
      callback_url: "https://boards.example.com/back",
    });
    await deleteWhileOpen({
      where: "/admin/applications",
      name,
      item,
      press,
      remove: () => api("DELETE", `/oauth2-provider/apps/${created.id}`),
    });
  }

  // Unknown input is different: the dialog stays open and keeps it.
  await page.goto(toUrl("/admin/organizations/default"));
  await page.getByRole("button", { name: "Add member" }).click();
  await dialog.getByLabel("Username").fill("not-a-user");
  await dialog.getByRole("button", { name: "Add member" }).click();
  await dialog.locator(".error, [role=alert]").first().waitFor();
  result.typed = await dialog.getByLabel("Username").inputValue();
});
process.exit(0);
