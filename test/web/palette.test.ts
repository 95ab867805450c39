// The command palette lists every section; a missing one could not be found by typing.
import { expect, test } from "bun:test";
import { join } from "node:path";

const APP = join(import.meta.dir, "../../src/web/app");
const read = (path: string): Promise<string> => Bun.file(join(APP, path)).text();

test.each(["account", "admin"])("[WB-31] the palette has every section of /%s", async (page) => {
  const sections = [...(await read(`pages/${page}/${page}.tsx`)).matchAll(/\{ name: "([\w-]+)", label: /g)].map(
    ([, name]) => name,
  );
  const commands = await read("shell/commands.ts");
  const [, table = ""] = new RegExp(`path: "/${page}",[^]*?names: \\[([^]*?)\\n    \\],`).exec(commands) ?? [];
  const offered = [...table.matchAll(/\["([\w-]+)", /g)].map(([, name]) => name);
  expect(sections.length).toBeGreaterThan(1);
  expect(offered.toSorted()).toEqual(sections.toSorted());
});
