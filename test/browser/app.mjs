// The app's first pages as a person uses them: sign in, the list live, search, bulk, the palette, a cut line.
// node app.mjs CHROMIUM URL EMAIL PASSWORD PAGES [FOLDER]
import { inApp } from "./app-page.mjs";
import { askedByPress, badlyAsked } from "./early.mjs";

const [file, url, email, password, pages, folder] = process.argv.slice(2);

await inApp({ file, url, folder }, async ({ page, result, at, look }) => {
  await page.goto(at("/workspaces"));
  await page.waitForURL("**/login?*");
  await page.getByLabel("E-mail").fill(email);
  await page.getByLabel("Password").fill("not the password");
  await page.getByRole("button", { name: "Sign in", exact: true }).click();
  await page.getByText("Incorrect email or password").waitFor();
  await look("login");
  await page.getByLabel("Password").fill(password);
  await page.getByRole("button", { name: "Sign in", exact: true }).click();
  await page.waitForURL("**/workspaces*");

  const rows = page.getByRole("table", { name: "Workspaces" });
  await rows.getByRole("link", { name: "alpha", exact: true }).waitFor();
  result.names = await rows.locator("a.name").allTextContents();
  await look("workspaces");

  // What is typed filters at once; a finished term is a chip.
  await page.keyboard.press("/");
  await page.keyboard.type("alph");
  await rows.getByRole("link", { name: "beta", exact: true }).waitFor({ state: "detached" });
  result.filtered = await rows.locator("a.name").allTextContents();
  await page.waitForURL((address) => address.searchParams.get("q")?.endsWith("alph"));
  result.address = new URL(page.url()).searchParams.get("q");
  await page.getByRole("combobox", { name: "Filter workspaces" }).fill("stat");
  await page.keyboard.press("Tab");
  await page.getByRole("option", { name: "stopped" }).click();
  await page.getByText("No workspace fits").waitFor();
  await page.getByRole("button", { name: "Remove status filter" }).click();
  await rows.getByRole("link", { name: "beta", exact: true }).waitFor();

  // Both are stopped together, and the list says so by itself.
  await page.getByRole("checkbox", { name: "Select all" }).check();
  await look("workspaces-selected");
  await page.getByRole("toolbar", { name: "Selected workspaces" }).getByRole("button", { name: "Stop" }).click();
  await page.getByRole("row", { name: /alpha.*Stopped/ }).waitFor();
  await page.getByRole("row", { name: /beta.*Stopped/ }).waitFor();

  // The server's own words in a menu of the row.
  await page.getByRole("button", { name: "More for alpha" }).click();
  await page.getByRole("button", { name: "Pin", exact: true }).click();
  await page.getByTitle("Pinned").waitFor();

  await page.keyboard.press("Control+k");
  await page.getByRole("combobox", { name: "Search everything" }).fill("bet");
  await page.getByRole("option", { name: /^beta/ }).waitFor();
  await look("palette");
  await page.keyboard.press("Escape");

  // The same as a command.
  await page.getByRole("button", { name: "Show what this page did as a command" }).click();
  result.command = await page.locator("dialog pre").first().textContent();
  await page.getByRole("button", { name: "curl" }).click();
  result.curl = await page.locator("dialog pre").first().textContent();
  await page.keyboard.press("Escape");

  await page.getByRole("link", { name: "Home" }).first().click();
  await page.getByRole("heading", { name: "Recent workspaces" }).waitFor();
  await look("home");

  // What is not there, or not theirs, says so and is not tried for ever.
  const none = "00000000-0000-4000-8000-000000000000";
  const sockets = [];
  page.on("websocket", (socket) => sockets.push(socket.url()));
  await page.goto(at(`/workspaces/${none}`));
  await page.getByText("There is no such workspace").waitFor();
  await page.goto(at(`/chats/${none}`));
  await page.getByText("There is no such chat").waitFor();
  result.tried = sockets.filter((address) => address.includes(none));
  result.writable = await page.getByRole("textbox", { name: "Message" }).count();

  // Each page once more, opened anew: its data is asked for with it.
  result.asked = await badlyAsked(page, at, JSON.parse(pages));
  result.pressed = await askedByPress(page, at, "/chats/");
});
