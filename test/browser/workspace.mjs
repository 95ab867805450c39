// A workspace's life in the app: created from a template, its log, its terminal with reconnects, a shared port, a schedule, other
// parameters, its builds, its deletion. node workspace.mjs CHROMIUM URL EMAIL PASSWORD [FOLDER]
import { playInApp, signIn } from "./app-page.mjs";

const [file, url, email, password, folder] = process.argv.slice(2);
const LINES = 10_000;
const SCRIPT = `seq -f 'line %.0f of many' 1 ${LINES}; printf '\\033[32mall is well\\033[0m\\n'`;

await playInApp({ file, url, folder }, async ({ page, result, toUrl, inspect }) => {
  // The link fills in the form, also after a sign-in.
  await signIn(page, toUrl("/new?template=local&name=first"), email, password);
  const script = page.getByLabel("Startup script");
  await script.waitFor();
  result.name = await page.getByLabel("Name", { exact: true }).inputValue();
  await page.getByLabel("Name", { exact: true }).fill("not a name");
  await page.getByRole("button", { name: "Create" }).click();
  await page.getByText(/^Must contain only letters and digits/).waitFor();
  await inspect("create");
  await page.getByLabel("Name", { exact: true }).fill("first");
  await page.getByRole("button", { name: "Dry run" }).click();
  await page.getByText("Dry run succeeded.").waitFor();
  await inspect("create-dry-run");
  await script.fill(SCRIPT);
  result.link = await page.locator("aside pre").textContent();
  await page.getByRole("button", { name: "Create" }).click();

  // The log is live; of ten thousand lines only a few are in the page, and search finds the others.
  await page.waitForURL("**/workspaces/*");
  const log = page.getByRole("region", { name: "Build and agent log, lines" });
  await log.getByText("all is well").waitFor();
  result.nodes = await log.locator(".l").count();
  result.green = await log.getByText("all is well").getAttribute("class");
  await page.getByRole("button", { name: "Search in log" }).click();
  await page.getByRole("searchbox").fill("line 5000 of");
  await log.getByText("line 5000 of many").waitFor();
  result.hits = await page.locator(".find [role=status]").textContent();
  await page.keyboard.press("Escape");
  await page.getByRole("heading", { name: "Timings of build 1" }).waitFor();
  await inspect("workspace");

  // The terminal: after the page was closed, the same terminal is shown again.
  const base = page.url();
  await page.goto(`${base}/terminal`);
  const terminal = page.getByRole("region", { name: "Terminal of first" });
  await terminal.locator(".xterm-screen").waitFor();
  const typeLine = async (text) => {
    await terminal.locator("textarea").focus();
    await page.keyboard.type(text);
    await page.keyboard.press("Enter");
  };
  // Without a graphics card, its rows are DOM elements.
  const waitForOutput = (text) =>
    page.waitForFunction((expected) => document.querySelector(".xterm-rows")?.textContent.includes(expected), text);
  await page.waitForFunction(() => /[#$%>]/.test(document.querySelector(".xterm-rows")?.textContent ?? ""));
  await typeLine("kept=$((6*7)); echo the-$kept");
  await waitForOutput("the-42");
  result.overflowPx = await page.evaluate(() => document.documentElement.scrollHeight - innerHeight);
  await inspect("terminal");
  await page.reload();
  await terminal.locator(".xterm-screen").waitFor();
  await waitForOutput("the-42");
  await typeLine("echo again-$kept");
  await waitForOutput("again-42");

  await page.getByRole("link", { name: "Schedule" }).click();
  await page.getByRole("switch", { name: /Autostop/ }).check();
  await page.getByLabel("Hours after each start").fill("2.5");
  await page.getByRole("region", { name: "Stopping" }).getByRole("button", { name: "Save" }).click();
  await page.getByText("Stops 2.5 h after each start").waitFor();
  await page.getByRole("switch", { name: /Autostart/ }).check();
  await page.getByRole("region", { name: "Starting" }).getByRole("button", { name: "Save" }).click();
  await page.getByText("Starts at 09:00").waitFor();
  await inspect("schedule");
  // In the meantime, another tab changes the same settings: untouched fields are updated, and the person is warned before their input
  // overwrites the change.
  const putSetting = (setting, body) =>
    page.evaluate(
      ([path, text]) =>
        fetch(path, { method: "PUT", headers: { "content-type": "application/json" }, body: text }).then(
          ({ status }) => status,
        ),
      [`/api/v2${new URL(base).pathname}/${setting}`, JSON.stringify(body)],
    );
  const stopping = page.getByRole("region", { name: "Stopping" });
  const starting = page.getByRole("region", { name: "Starting" });
  const hours = page.getByLabel("Hours after each start");
  await putSetting("ttl", { ttl_ms: 3 * 3_600_000 });
  await page.waitForFunction(() => document.querySelector("[aria-labelledby=stop] input[type=number]")?.value === "3");
  // The workspace's stream has not delivered the change yet.
  let dropsMessages = true;
  await page.routeWebSocket(/watch-ws/, (socket) => {
    const server = socket.connectToServer();
    server.onMessage((message) => !dropsMessages && socket.send(message));
  });
  await page.reload();
  await hours.fill("5");
  await putSetting("ttl", { ttl_ms: 4 * 3_600_000 });
  await stopping.getByRole("button", { name: "Save" }).click();
  await stopping.getByRole("alert").filter({ hasText: "autostop is 4 h after each start" }).waitFor();
  await inspect("schedule-meanwhile");
  await stopping.getByRole("button", { name: "Discard my changes" }).click();
  result.hoursAfterDiscard = await hours.inputValue();
  await hours.fill("6");
  await putSetting("ttl", { ttl_ms: 7 * 3_600_000 });
  await stopping.getByRole("button", { name: "Save" }).click();
  await stopping.getByRole("alert").filter({ hasText: "autostop is 7 h after each start" }).waitFor();
  await stopping.getByRole("button", { name: "Save" }).click();
  await page.getByText("Stops 6 h after each start").waitFor();
  await page.getByLabel("Time", { exact: true }).fill("08:00");
  await putSetting("autostart", { schedule: "CRON_TZ=Europe/Paris 30 7 * * 1-5" });
  await starting.getByRole("button", { name: "Save" }).click();
  await starting
    .getByRole("alert")
    .filter({ hasText: "autostart is at 07:30 on Mon, Tue, Wed, Thu, Fri (Europe/Paris)" })
    .waitFor();
  await starting.getByRole("button", { name: "Discard my changes" }).click();
  result.startTime = await page.getByLabel("Time", { exact: true }).inputValue();
  dropsMessages = false;

  // A parameter change is shown before it is applied, and creates a second build.
  await page.getByRole("link", { name: "Parameters" }).click();
  await page.getByLabel("Startup script").fill("echo changed");
  await page.getByRole("cell", { name: "echo changed" }).waitFor();
  await inspect("parameters");
  // In the meantime, another tab builds with other parameters: input stays here, and the other values are shown.
  await page.evaluate(
    ([id, body]) =>
      fetch(`/api/v2/workspaces/${id}/restart`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body,
      }),
    [
      new URL(base).pathname.split("/").at(-1),
      JSON.stringify({ rich_parameter_values: [{ name: "startup_script", value: "echo theirs" }] }),
    ],
  );
  await page.getByRole("alert").filter({ hasText: "startup_script is now echo theirs" }).waitFor();
  result.typed = await page.getByLabel("Startup script").inputValue();
  await page.waitForFunction(
    () =>
      ![...document.querySelectorAll("button")].find((button) => button.textContent === "Update and restart")?.disabled,
  );
  // The server performs the restart, so the page need not stay open.
  const requested = page.waitForResponse((response) => response.url().endsWith("/restart"));
  await page.getByRole("button", { name: "Update and restart" }).click();
  await requested;
  await page.goto("about:blank");
  await page.goto(`${base}/logs`);
  await log.getByText("changed", { exact: true }).waitFor();
  await page.getByRole("link", { name: "Builds" }).click();
  await page.getByRole("button", { name: "Start" }).nth(1).waitFor();
  result.builds = (await page.getByRole("table").getByRole("button").allTextContents()).map((text) => text.trim());
  await inspect("builds");

  await page.getByRole("link", { name: "Sharing" }).click();
  await page.getByText("Only the owner and administrators can see this workspace.").waitFor();
  await page.getByLabel("User or group").selectOption({ index: 1 });
  await page.getByText("Manage").click();
  await page.getByRole("button", { name: "Share", exact: true }).click();
  await page.getByLabel(/^Access of Everyone in/).waitFor();
  await inspect("sharing");
  // Someone else has changed that role in the meantime: the change is shown, and not silently overwritten.
  await page.evaluate(
    async (path) => {
      const response = await fetch(path);
      const { group_roles } = await response.json();
      const body = JSON.stringify({ group_roles: { [Object.keys(group_roles)[0]]: "use" } });
      await fetch(path, { method: "PATCH", headers: { "content-type": "application/json" }, body });
    },
    `/api/v2${new URL(base).pathname}/acl`,
  );
  await page.getByRole("button", { name: /^Remove access for/ }).click();
  await page.getByText(/Someone else changed this in the meantime: Everyone in .*, Use/).waitFor();
  result.role = await page.getByLabel(/^Access of Everyone in/).inputValue();
  await page.getByRole("button", { name: /^Remove access for/ }).click();
  await page.getByText("Only the owner and administrators can see this workspace.").waitFor();
  await page.getByText("It works until the workspace stops.").waitFor();
  await inspect("unshared");

  // The files of a stopped workspace are a click away.
  await page.getByRole("button", { name: "Stop", exact: true }).click();
  await page.getByRole("link", { name: "Files", exact: true }).click();
  await page.getByRole("heading", { name: "first is stopped" }).waitFor();
  await page.getByRole("button", { name: "Start", exact: true }).last().click();
  await page.getByRole("heading", { name: "first is stopped" }).waitFor({ state: "detached" });
  await page.getByRole("button", { name: "Stop", exact: true }).waitFor();
  await page.getByRole("button", { name: "More for first" }).click();
  await page.getByRole("button", { name: "Delete…" }).click();
  await page.getByRole("dialog").getByText("local_process").waitFor();
  const deleteButton = page.getByRole("button", { name: "Delete workspace" });
  result.isDeleteDisabled = await deleteButton.isDisabled();
  const color = () => deleteButton.evaluate((button) => getComputedStyle(button).backgroundColor);
  const before = await color();
  await page.getByLabel("Type first to confirm").fill("first");
  await inspect("delete");
  result.looksDisabled = before !== (await color());
  await page.getByLabel("Type first to confirm").press("Enter");
  await page.getByText("first was deleted").waitFor();
  await page.getByRole("link", { name: "Open trash" }).click();
  await page.getByRole("listitem").filter({ hasText: "/first" }).waitFor();
});
