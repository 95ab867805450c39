// The whole product from a new user's view: setup, a first model that was detected, a first workspace, its terminal, a chat that edits a
// repository, a shared port, a template edited, a user and a model added, and the audit log of everything. node whole.mjs CHROMIUM SETUP
// MODELS NODE SECONDS [FOLDER]
import { checkPage, openPage } from "./app-page.mjs";
import { askTest } from "./ask.mjs";
import { playInChromium } from "./chromium.mjs";
import { takeFirstSteps } from "./first-steps.mjs";

const [file, setup, models, node, seconds, folder] = process.argv.slice(2);
const at = (path) => new URL(path, setup).href;
const ADA = { email: "ada@example.com", username: "ada", password: "four quiet harbours at night" };
const PORT = 18_123;

await playInChromium(
  file,
  { viewport: { width: 1440, height: 900 }, reducedMotion: "no-preference" },
  async (_blank, context) => {
    const problems = [];
    const page = await openPage(context, problems);
    const look = async (name) => problems.push(...(await checkPage(page, `whole-${name}`, folder)));
    const dialog = page.getByRole("dialog");
    const message = page.getByRole("textbox", { name: "Message" });
    const flow = (one) => one.locator(".flow").textContent();
    const button = (name) => page.getByRole("button", { name, exact: true });
    const result = { wrong: problems };

    const { workspace: base, ...steps } = await takeFirstSteps(page, setup, ADA);
    result.first = steps;
    await look("hello");

    // A terminal: a repository is created, a program stopped and resumed; the server is killed, and the shell is still the same.
    await page.goto(`${base}/terminal`);
    await page.waitForFunction(() => /[#$%>]/.test(document.querySelector(".xterm-rows")?.textContent ?? ""));
    const type = async (text) => {
      await page.locator(".xterm-helper-textarea").focus();
      await page.keyboard.type(text);
      await page.keyboard.press("Enter");
    };
    const shows = (text) =>
      page.waitForFunction((wanted) => document.querySelector(".xterm-rows")?.textContent.includes(wanted), text);
    await type("mkdir -p work; cd work; echo 'echo $(($1 - $2))' > sum.sh; git init -q -b main; git add .");
    await type("git -c user.name=Ada -c user.email=ada@example.com commit -qm one; echo made-$((40+2))");
    await shows("made-42");
    // A key sent before the program is in the foreground would go only to the shell.
    await type("kept=$((6*7)); sh -c 'echo up-$((1+1)); exec sleep 1000'");
    await shows("up-2");
    await page.keyboard.press("Control+z");
    await shows("Stopped");
    await type("fg");
    // Typed, stopped, and resumed: an earlier interrupt would go to the shell.
    await page.waitForFunction(
      () => document.querySelector(".xterm-rows").textContent.split("sleep 1000").length === 4,
    );
    await page.keyboard.press("Control+c");
    await type("echo code-$? kept-$kept");
    await shows("code-130 kept-42");
    await askTest("restart");
    // Input on a cut connection is lost, as in any terminal, so it is repeated until it arrives.
    const received = () => page.evaluate(() => document.querySelector(".xterm-rows").textContent.includes("still-42"));
    for (let tries = 0; tries < 30 && !(await received()); tries++) {
      await type("echo still-$kept");
      await page.waitForTimeout(1_000);
    }
    await shows("still-42");

    // Model permissions: commands need approval.
    await page.goto(at("/account/permissions"));
    await page.getByLabel("Permission mode of new chats").selectOption("allow");
    await button("Add rule").click();
    await page.getByLabel("Action").selectOption("ask");
    await button("Save permissions").click();
    await page.getByText("Permissions saved").waitFor();

    // A chat edits the repository and asks, on two pages at the same time; both show the same.
    await page.goto(base);
    await page.getByRole("link", { name: "New chat", exact: true }).click();
    await message.fill("Fix the sum");
    await message.press("Enter");
    await page.waitForURL("**/chats/*");
    const chat = page.url();
    const other = await openPage(context, problems);
    await other.goto(chat);
    const asks = (one) => one.getByRole("heading", { name: "Run this command?" });
    await asks(page).waitFor();
    await asks(other).waitFor();
    await look("asks");
    await other.getByRole("button", { name: /^Allow once/ }).click();
    for (const one of [page, other]) {
      await asks(one).waitFor({ state: "detached" });
      await one.getByText("it prints 5").waitFor();
    }
    result.same = (await flow(page)) === (await flow(other));
    await other.close();
    const rested = () => page.getByRole("button", { name: "Interrupt" }).waitFor({ state: "detached" });

    // The network is lost during an answer; then the server is killed during another answer.
    const numbers = (to) => Array.from({ length: to }, (_, n) => n + 1).join(" ");
    await message.fill("Count to 400");
    await message.press("Enter");
    await page.getByText(/1 2 3 4 5/).waitFor();
    await context.setOffline(true);
    await page.evaluate((wait) => new Promise((resolve) => setTimeout(resolve, wait)), Number(seconds) * 1000);
    result.before = (await flow(page)).includes("1 2 3 4 5");
    await context.setOffline(false);
    await page.getByText(/398 399 400/).waitFor();
    await rested();
    result.counted = (await page.locator(".prose").last().textContent()).trim() === numbers(400);
    await message.fill("Count to 300");
    await message.press("Enter");
    await page.waitForFunction(() => {
      const last = [...document.querySelectorAll(".prose")].at(-1)?.textContent.trim() ?? "";
      return last.startsWith("1 2 3 4 5 ") && !last.includes(" 399");
    });
    await askTest("restart");
    await page
      .getByText(/298 299 300/)
      .last()
      .waitFor();
    await rested();
    result.again = (await page.locator(".prose").last().textContent()).trim().endsWith("298 299 300");

    // Interrupted; then the first message is edited and the files are restored.
    await message.fill("Count on");
    await message.press("Enter");
    await page.getByRole("button", { name: "Interrupt" }).waitFor();
    await page.waitForFunction(() =>
      [...document.querySelectorAll(".user-text")].at(-1)?.textContent.includes("Count on"),
    );
    await message.press("Escape");
    await rested();
    const first = page.locator(".user-message").first();
    await first.hover();
    await first.getByRole("button", { name: "Edit message" }).click();
    const edit = page.getByRole("group", { name: "Edit message" });
    await edit.getByRole("textbox").fill("Remember the sum");
    await edit.getByRole("switch").check();
    await edit.getByRole("button", { name: "Send again" }).click();
    await page.getByText("I will remember that.").waitFor();
    await rested();
    result.sent = await page.locator(".user-text").allTextContents();
    result.chat = new URL(chat).pathname;
    await page.goto(`${base}/terminal`);
    await type("clear; cat sum.sh; git status --short | wc -l");
    await shows("echo $(($1 - $2))");

    // A listening port is shared.
    const app = `(_, to) => { to.setHeader("content-type", "text/plain"); to.end("from the workspace"); }`;
    await type(`clear; ${node} -e 'require("http").createServer(${app}).listen(${PORT})' &`);
    await page.goto(base);
    await button("Share a port").click();
    await dialog.getByLabel("Port", { exact: true }).fill(String(PORT));
    await dialog.getByText("signed-in users", { exact: true }).click();
    await dialog.getByRole("button", { name: "Share port" }).click();
    await page.getByText(`Port ${PORT} is shared`).waitFor();
    const [shared] = await Promise.all([
      context.waitForEvent("page"),
      page.getByRole("link", { name: new RegExp(`:${PORT}`) }).click(),
    ]);
    await shared.getByText("from the workspace").waitFor();
    await shared.close();
    await look("workspace");

    // Its template is edited, tried, and promoted.
    await page.goto(at("/templates"));
    await page
      .getByRole("main")
      .getByRole("link", { name: /^local/i })
      .first()
      .click();
    await page.getByRole("link", { name: "Files" }).click();
    await page.getByRole("textbox", { name: "template.yaml" }).click();
    await page.keyboard.press("Control+End");
    await page.keyboard.type("# Said in the browser.\n");
    await page.keyboard.press("Control+s");
    await dialog.getByLabel("Message").fill("A remark.");
    await dialog.getByRole("button", { name: "Save and import" }).click();
    await dialog.getByRole("button", { name: "Dry run" }).click();
    await dialog.getByText("Dry run succeeded.").waitFor();
    await dialog.getByRole("button", { name: "Promote" }).click();
    await page.getByText(/New workspaces use/).waitFor();

    // A user, and another model.
    await page.goto(at("/admin/people"));
    await page.getByRole("button", { name: "Other ways to add users" }).click();
    await page.getByRole("button", { name: "Add user…" }).click();
    await dialog.getByLabel("Type", { exact: true }).selectOption("password");
    await dialog.getByLabel("Username").fill("grace");
    await dialog.getByLabel("Email").fill("grace@example.com");
    await dialog.getByLabel("Password").fill("nine grey herons at noon");
    await dialog.getByRole("button", { name: "Add user" }).click();
    await page.getByRole("listitem").filter({ hasText: "grace@example.com" }).waitFor();
    await page.goto(at("/admin/models"));
    await button("Add provider").click();
    await dialog.getByLabel("Provider").selectOption("openai-compat");
    await dialog.getByLabel("Name").fill("Elsewhere");
    await dialog.getByLabel("Address").fill(`${models}/v1`);
    await dialog.getByRole("button", { name: "Add provider" }).click();
    await dialog.getByLabel("Model").fill("second");
    await dialog.getByRole("button", { name: "Test and add model" }).click();
    await page.getByText(/second responded/).waitFor();

    // The audit log contains all of these actions.
    result.audit = {};
    for (const [what, query] of Object.entries({
      user: "resource_type:user action:create",
      model: "resource_type:ai_model action:create",
      provider: "resource_type:ai_provider action:create",
      workspace: "resource_type:workspace action:create",
      share: "resource_type:port_share action:create",
      version: "resource_type:template_version action:create",
      template: "resource_type:template action:write",
      chat: "resource_type:chat action:create",
      permissions: "resource_type:user_chat_settings",
    })) {
      await page.goto(at(`/audit?q=${encodeURIComponent(query)}`));
      const entries = page.getByRole("list", { name: "Entries" }).getByRole("link");
      await entries.first().or(page.getByText("No matching entries")).waitFor();
      result.audit[what] = await entries.count();
    }
    await page.goto(at("/audit"));
    await page.getByRole("list", { name: "Entries" }).getByRole("link").first().waitFor();
    await look("audit");
    return result;
  },
);
process.exit(0);
