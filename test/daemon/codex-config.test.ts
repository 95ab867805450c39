// Codex's configuration in the home folder of a workspace.
import { expect, test } from "bun:test";
import { existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { writeCodexConfig } from "#src/daemon/codex-config.ts";
import { tempDirectory } from "#test/support/server.ts";

const GATEWAY_ENV = {
  OPENAI_BASE_URL: "https://slipway.example/api/v2/ai/openai/v1",
  OPENAI_API_KEY: "slipway-ai.a.b",
};

const openHome = () => {
  const directory = tempDirectory();
  const folder = join(directory.path, ".codex");
  return {
    HOME: directory.path,
    folder,
    path: join(folder, "config.toml"),
    [Symbol.dispose]: () => directory[Symbol.dispose](),
  };
};

test("[DM-24] the configuration contains the gateway's current address but no token, and is removed with the gateway", () => {
  using home = openHome();
  const { HOME, folder, path } = home;
  writeCodexConfig({ HOME, ...GATEWAY_ENV });
  expect(Bun.TOML.parse(readFileSync(path, "utf8"))).toMatchObject({
    model_provider: "slipway",
    model_providers: {
      slipway: { base_url: GATEWAY_ENV.OPENAI_BASE_URL, env_key: "OPENAI_API_KEY", wire_api: "responses" },
    },
  });
  expect(readFileSync(path, "utf8")).not.toContain("slipway-ai");
  writeCodexConfig({ HOME, ...GATEWAY_ENV, OPENAI_BASE_URL: "https://moved.example/v1" });
  expect(readFileSync(path, "utf8")).toContain("https://moved.example/v1");
  expect(readdirSync(folder)).toEqual(["config.toml"]);
  writeCodexConfig({ HOME });
  expect(existsSync(path)).toBe(false);
});

test("[DM-24] leaves a configuration alone that a person has written, changed or linked", () => {
  using home = openHome();
  const { HOME, folder, path } = home;
  mkdirSync(folder);
  const ownConfig = 'model = "o3"\n';
  writeFileSync(path, ownConfig);
  writeCodexConfig({ HOME, ...GATEWAY_ENV });
  writeCodexConfig({ HOME });
  expect(readFileSync(path, "utf8")).toBe(ownConfig);

  const elsewhere = join(HOME, "elsewhere");
  mkdirSync(elsewhere);
  const dotfiles = join(HOME, "dotfiles.toml");
  writeFileSync(dotfiles, ownConfig);
  symlinkSync(dotfiles, join(elsewhere, "config.toml"));
  writeCodexConfig({ HOME, CODEX_HOME: elsewhere, ...GATEWAY_ENV });
  expect(readFileSync(dotfiles, "utf8")).toBe(ownConfig);

  const changed = join(HOME, "changed");
  writeCodexConfig({ HOME, CODEX_HOME: changed, ...GATEWAY_ENV });
  writeFileSync(join(changed, "config.toml"), `${readFileSync(join(changed, "config.toml"), "utf8")}model = "o3"\n`);
  writeCodexConfig({ HOME, CODEX_HOME: changed });
  expect(readFileSync(join(changed, "config.toml"), "utf8")).toEndWith('model = "o3"\n');
});

test("[DM-24] writes nothing for a person's own key, and ignores a folder that is not writable", () => {
  using home = openHome();
  const { HOME, folder } = home;
  writeCodexConfig({ HOME, ...GATEWAY_ENV, OPENAI_API_KEY: "sk-own" });
  expect(existsSync(folder)).toBe(false);
  writeFileSync(folder, "a file where the folder would be");
  writeCodexConfig({ HOME, ...GATEWAY_ENV });
  expect(readFileSync(folder, "utf8")).toBe("a file where the folder would be");
});
