// A new user with an empty server and a browser: VS Code opens a clone of their repository, and a chat's edit is approved as a diff. Counts
// clicks. With genuine editors, a file is saved and a command run in VS Code, and a cell in JupyterLab. node first-hour.mjs CHROMIUM SETUP
// REPOSITORY RELEASES GENUINE [FOLDER]
import { openPage } from "./app-page.mjs";
import { playInChromium, scaleTimeout } from "./chromium.mjs";
import { runCell, saveAndRun } from "./editors.mjs";
import { countPresses, setUpServer, takeScreenshot } from "./presses.mjs";

const [file, setup, repository, releases, genuine, folder] = process.argv.slice(2);
const ADA = { email: "ada@example.com", username: "ada", password: "four quiet harbours at night" };

await playInChromium(file, { viewport: { width: 1440, height: 900 } }, async (_blank, context) => {
  const problems = [];
  const result = { problems };
  const startedAt = Date.now();
  const page = await openPage(context, problems);
  const presses = countPresses();
  const takePicture = (name, targetPage = page) => takeScreenshot(targetPage, folder, `first-hour-${name}`);
  const press = (locator) => presses.press(locator);
  const button = (name) => page.getByRole("button", { name, exact: true });

  await setUpServer(page, setup, ADA);
  await takePicture("setup");
  await press(button("Create user and sign in"));
  await page.getByRole("heading", { name: "Welcome, ada" }).waitFor();
  await takePicture("home");
  await press(button("Add and test"));
  await page.getByText(/qwen3-coder:30b responded/).waitFor();
  await press(button("Start VS Code"));
  await page.waitForURL("**/new?template=code-server*");
  await page.getByRole("textbox", { name: "Repository" }).fill(repository);
  // Not counted, because it is only needed on a machine without internet.
  await page.getByLabel("Download from").fill(`${releases}/code-server`);
  await takePicture("new");
  await press(button("Create"));
  await page.waitForURL(/\/workspaces\/[0-9a-f-]{36}/);
  const workspace = page.url();
  const app = page.getByRole("region", { name: "Apps and ports" }).getByRole("link", { name: "VS Code", exact: true });
  await page.getByText("VS Code is ready.").waitFor();
  await takePicture("workspace");
  const [editor] = await Promise.all([context.waitForEvent("page"), press(app.first())]);
  result.host = new URL(editor.url()).hostname;
  if (genuine === "yes") {
    await editor.getByRole("treeitem", { name: "work" }).waitFor();
    result.folder = await editor.title();
  } else await editor.getByText("here").waitFor();
  await takePicture("editor", editor);

  await press(page.getByRole("link", { name: "New chat", exact: true }));
  const message = page.getByRole("textbox", { name: "Message" });
  await message.fill("Fix the sum");
  await presses.key(message, "Enter");
  const approval = page.getByRole("group", { name: "Edit sum.sh?" });
  const diff = approval.getByRole("region", { name: /^Diff of/ });
  result.diff = (await diff.textContent()).replace(/\s+/g, " ");
  await takePicture("approve");
  await press(approval.getByRole("button", { name: "Allow once" }));
  // The edit is done, and the agent asks to run its command.
  await page.getByRole("heading", { name: "Run this command?" }).waitFor();
  result.presses = presses.count();
  result.seconds = (Date.now() - startedAt) / 1000;

  if (genuine === "yes") {
    result.saved = await saveAndRun(editor);
    await takePicture("editor-saved", editor);
    await editor.close();
    await page.goto(new URL("/templates", workspace).href);
    await page.locator(".pick", { hasText: "JupyterLab" }).getByRole("button").first().click();
    await page.waitForURL("**/new?template=jupyterlab*");
    await page.getByLabel("Download from").fill(`${releases}/simple`);
    await button("Create").click();
    await page.getByText("JupyterLab is ready.").waitFor({ timeout: scaleTimeout(400_000) });
    const [lab] = await Promise.all([
      context.waitForEvent("page"),
      page.getByRole("region", { name: "Apps and ports" }).getByRole("link", { name: "JupyterLab" }).first().click(),
    ]);
    result.cell = await runCell(lab);
    await takePicture("jupyterlab", lab);
  }
  return result;
});
process.exit(0);
