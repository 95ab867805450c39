// The whole product from a new user's view: setup, a first model that was detected, a first workspace, its terminal, a chat that edits a
// repository, a shared port, a template edited, a user and a model added, and the audit log of everything. node whole.mjs CHROMIUM SETUP
// MODELS NODE SECONDS [FOLDER]
import { checkPage, openPage } from "./app-page.mjs";
import { askTest } from "./ask.mjs";
import { playInChromium } from "./chromium.mjs";
import { takeFirstSteps } from "./first-steps.mjs";

const [file, setup, models, node, seconds, folder] = process.argv.slice(2);
const toUrl = (path) => new URL(path, setup).href;
const ADA = { email: "ada@example.com", username: "ada", password: "four quiet harbours at night" };
const PORT = 18_123;

await playInChromium(
  file,
  { viewport: { width: 1440, height: 900 }, reducedMotion: "no-preference" },
  async (_blank, context) => {
    const problems = [];
    const page = await openPage(context, problems);
    const inspect = async (name) => problems.push(...(await checkPage(page, `whole-${name}`, folder)));
    const dialog = page.getByRole("dialog");
    const message = page.getByRole("textbox", { name: "Message" });
    const readMessages = (anyPage) => anyPage.locator(".flow").textContent();
    const button = (name) => page.getByRole("button", { name, exact: true });
    const result = { problems };

    const { workspace: base, ...steps } = await takeFirstSteps(page, setup, ADA);
    result.firstSteps = steps;
    await inspect("hello");

    // A terminal: a repository is created, a program stopped and resumed; the server is killed, and the shell is still the same.
    await page.goto(`${base}/terminal`);
    await page.waitForFunction(() => /[#$%>]/.test(document.querySelector(".xterm-rows")?.textContent ?? ""));
    const type = async (text) => {
      await page.locator(".xterm-helper-textarea").focus();
      await page.keyboard.type(text);
      await page.keyboard.press("Enter");
    };
    const waitForOutput = (text) =>
      page.waitForFunction((expected) => document.querySelector(".xterm-rows")?.textContent.includes(expected), text);
    await type("mkdir -p work; cd work; echo 'echo $(($1 - $2))' > sum.sh; git init -q -b main; git add .");
    await type("git -c user.name=Ada -c user.email=ada@example.com commit -qm one; echo made-$((40+2))");
    await waitForOutput("made-42");
    // A key sent before the program is in the foreground would go only to the shell.
    await type("kept=$((6*7)); sh -c 'echo up-$((1+1)); exec sleep 1000'");
    await waitForOutput("up-2");
    await page.keyboard.press("Control+z");
    await waitForOutput("Stopped");
    await type("fg");
    // Typed, stopped, and resumed: an earlier interrupt would go to the shell.
    await page.waitForFunction(
      () => document.querySelector(".xterm-rows").textContent.split("sleep 1000").length === 4,
    );
    await page.keyboard.press("Control+c");
    await type("echo code-$? kept-$kept");
    await waitForOutput("code-130 kept-42");
    await askTest("restart");
    // Input on a cut connection is lost, as in any terminal, so it is repeated until it arrives.
    const hasArrived = () =>
      page.evaluate(() => document.querySelector(".xterm-rows").textContent.includes("still-42"));
    for (let tries = 0; tries < 30 && !(await hasArrived()); tries++) {
      await type("echo still-$kept");
      await page.waitForTimeout(1_000);
    }
    await waitForOutput("still-42");

    // Model permissions: commands need approval.
    await page.goto(toUrl("/account/permissions"));
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
    const otherPage = await openPage(context, problems);
    await otherPage.goto(chat);
    const getApproval = (anyPage) => anyPage.getByRole("heading", { name: "Run this command?" });
    await getApproval(page).waitFor();
    await getApproval(otherPage).waitFor();
    await inspect("asks");
    await otherPage.getByRole("button", { name: /^Allow once/ }).click();
    for (const anyPage of [page, otherPage]) {
      await getApproval(anyPage).waitFor({ state: "detached" });
      await anyPage.getByText("it prints 5").waitFor();
    }
    result.same = (await readMessages(page)) === (await readMessages(otherPage));
    await otherPage.close();
    const waitForTurnEnd = () => page.getByRole("button", { name: "Interrupt" }).waitFor({ state: "detached" });

    // The network is lost during an answer; then the server is killed during another answer.
    const listNumbers = (max) => Array.from({ length: max }, (_, n) => n + 1).join(" ");
    await message.fill("Count to 400");
    await message.press("Enter");
    await page.getByText(/1 2 3 4 5/).waitFor();
    await context.setOffline(true);
    await page.evaluate((wait) => new Promise((resolve) => setTimeout(resolve, wait)), Number(seconds) * 1000);
    result.staysVisible = (await readMessages(page)).includes("1 2 3 4 5");
    await context.setOffline(false);
    await page.getByText(/398 399 400/).waitFor();
    await waitForTurnEnd();
    result.counted = (await page.locator(".prose").last().textContent()).trim() === listNumbers(400);
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
    await waitForTurnEnd();
    result.isSecondComplete = (await page.locator(".prose").last().textContent()).trim().endsWith("298 299 300");

    // Interrupted; then the first message is edited and the files are restored.
    await message.fill("Count on");
    await message.press("Enter");
    await page.getByRole("button", { name: "Interrupt" }).waitFor();
    await page.waitForFunction(() =>
      [...document.querySelectorAll(".user-text")].at(-1)?.textContent.includes("Count on"),
    );
    await message.press("Escape");
    await waitForTurnEnd();
    const firstMessage = page.locator(".user-message").first();
    await firstMessage.hover();
    await firstMessage.getByRole("button", { name: "Edit message" }).click();
    const edit = page.getByRole("group", { name: "Edit message" });
    await edit.getByRole("textbox").fill("Remember the sum");
    await edit.getByRole("switch").check();
    await edit.getByRole("button", { name: "Send again" }).click();
    await page.getByText("I will remember that.").waitFor();
    await waitForTurnEnd();
    result.sent = await page.locator(".user-text").allTextContents();
    result.chat = new URL(chat).pathname;
    await page.goto(`${base}/terminal`);
    await type("clear; cat sum.sh; git status --short | wc -l");
    await waitForOutput("echo $(($1 - $2))");

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
    await inspect("workspace");

    // Its template is edited, tried, and promoted.
    await page.goto(toUrl("/templates"));
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
    await page.goto(toUrl("/admin/people"));
    await page.getByRole("button", { name: "Other ways to add users" }).click();
    await page.getByRole("button", { name: "Add user…" }).click();
    await dialog.getByLabel("Type", { exact: true }).selectOption("password");
    await dialog.getByLabel("Username").fill("grace");
    await dialog.getByLabel("Email").fill("grace@example.com");
    await dialog.getByLabel("Password").fill("nine grey herons at noon");
    await dialog.getByRole("button", { name: "Add user" }).click();
    await page.getByRole("listitem").filter({ hasText: "grace@example.com" }).waitFor();
    await page.goto(toUrl("/admin/models"));
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
    for (const [kind, query] of Object.entries({
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
      await page.goto(toUrl(`/audit?q=${encodeURIComponent(query)}`));
      const entries = page.getByRole("list", { name: "Entries" }).getByRole("link");
      await entries.first().or(page.getByText("No matching entries")).waitFor();
      result.audit[kind] = await entries.count();
    }
    await page.goto(toUrl("/audit"));
    await page.getByRole("list", { name: "Entries" }).getByRole("link").first().waitFor();
    await inspect("audit");
    return result;
  },
);
process.exit(0);
