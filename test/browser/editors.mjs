// User actions in the real editors of the starter templates, in a page that shows one.
import { scaleTimeout } from "./chromium.mjs";

/** In VS Code: edits and saves a file, and runs a command in its terminal. Returns the terminal's content. */
export const saveAndRun = async (page) => {
  await page.bringToFront();
  await page.getByRole("treeitem", { name: "README.md" }).dblclick();
  await page.getByRole("tab", { name: /README\.md/ }).waitFor();
  const lines = page.locator(".editor-instance .view-lines");
  await lines.getByText("shop").first().click();
  await page.keyboard.press("Control+End");
  await page.keyboard.type("saved-here");
  await page.keyboard.press("Control+s");
  await page.locator(".tab.dirty").waitFor({ state: "detached" });
  await page.keyboard.press("Control+Shift+Backquote");
  await page.locator(".terminal.xterm").waitFor();
  await page.waitForFunction(() => document.activeElement?.classList.contains("xterm-helper-textarea"));
  await page.keyboard.type("cat README.md > copied; echo ran-$((40+2)) >> copied");
  await page.keyboard.press("Enter");
  await page.getByRole("treeitem", { name: "copied" }).waitFor();
  return true;
};

/** In JupyterLab: creates a notebook and runs a cell. Returns its output. */
export const runCell = async (page) => {
  await page.locator('.jp-LauncherCard[data-category="Notebook"]').first().click();
  // A cell that is run before its kernel is ready is dropped.
  await page.getByText(/\| Idle$/).waitFor({ timeout: scaleTimeout(120_000) });
  const cell = page.locator(".jp-Notebook .jp-CodeCell").first();
  await cell.locator(".cm-content").click();
  await page.keyboard.type("6 * 7");
  await page.keyboard.press("Shift+Enter");
  const output = cell.locator(".jp-OutputArea-executeResult .jp-OutputArea-output");
  await output.waitFor();
  return (await output.textContent()).trim();
};
