// Elements that open over a page: dialogs, menus, the palette, lists of suggestions. Each is opened by keyboard, checked, and closed with
// Escape. node overlays.mjs CHROMIUM URL TOKEN OVERLAYS [FOLDER]
import { checkOverlay, navigateInApp, OPEN, playInApp } from "./app-page.mjs";

const [file, url, token, overlays, folder] = process.argv.slice(2);

/** Returns the name of what is open over the page; empty if nothing is. */
const getOpenName = (page, selectors = OPEN) =>
  page.evaluate((selector) => {
    const open = [...document.querySelectorAll(selector)].filter((element) => element.checkVisibility());
    return open.at(-1)?.getAttribute("aria-label") ?? "";
  }, selectors);

/** Returns the part of the path that selects the page's title: `/admin/people`, `/templates/ID`. */
const toTitlePath = (path) => path.split("?")[0].split("/").slice(0, 3).join("/");

/** Performs the steps: `keys:` and `type:` at the focus, else a button or a field by its name. */
const press = async (page, step) => {
  if (step.startsWith("keys:")) return page.keyboard.press(step.slice(5));
  if (step.startsWith("type:")) return page.keyboard.type(step.slice(5));
  const [, role = "button", name = step] = /^(textbox|combobox) (.*)$/.exec(step) ?? [];
  const found = page.getByRole(role, { name, exact: true }).last();
  await found.focus();
  if (role === "button") await page.keyboard.press("Enter");
};

await playInApp({ file, url, token, folder }, async ({ page, result, toUrl }) => {
  result.opened = [];
  let path = "";
  for (const [target, ...steps] of JSON.parse(overlays)) {
    const name = `${target.replaceAll(/[0-9a-f-]{36}/g, "ID")} ${steps.join(" > ")}`;
    if (target !== path) {
      const hasOtherTitle = path !== "" && toTitlePath(target) !== toTitlePath(path);
      await (hasOtherTitle ? navigateInApp(page, toUrl(target)) : page.goto(toUrl(target)));
    }
    path = target;
    await page.locator("h1").first().waitFor({ state: "attached" });
    for (const [index, step] of steps.entries()) {
      await press(page, step);
      // A menu opens, then what one of its items opens.
      const overlaySelector = index > 0 && !step.includes(":") ? "dialog[open]" : OPEN;
      if (index === steps.length - 1 || (/^(keys:|[^:]*$)/.test(step) && !/^(textbox|combobox)/.test(step)))
        await page.locator(overlaySelector).last().waitFor();
    }
    result.opened.push(await getOpenName(page));
    result.problems.push(...(await checkOverlay(page, name, folder)));
    await page.keyboard.press("Escape");
    await page.locator(OPEN).last().waitFor({ state: "hidden" });
    // With the keyboard, the focus returns to where it was.
    if (await page.evaluate(() => document.activeElement === document.body))
      result.problems.push(`${name}: the focus is lost`);
  }
});
