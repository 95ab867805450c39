// Engine fixtures for repository tests: the test image with this machine's git, tagged with any names, and the address at which containers
// reach this machine.
import { createTarEnd, createTarEntry, joinStreams } from "#base/program-tar.ts";
import type { Engine } from "#src/provisioners/docker/engine.ts";
import { IMAGE } from "./docker-world.ts";

/** The test image with git. */
export const GIT_IMAGE = "slipway-test-git:1";

/** A tar of git, its http and ssh helpers, and their libraries. */
const GIT_FILES = `
core=$(git --exec-path)
programs="$(command -v git) $(command -v ssh || true) $core/git $core/git-remote-http $core/git-remote-https $core/git-submodule $core/git-sh-setup $core/git-sh-i18n"
libraries=$(ldd $core/git $core/git-remote-http $(command -v ssh || true) | grep -o '/[^ ]*' | grep -v ':$' | sort -u)
tar -chPf - $programs $libraries 2>/dev/null || true
`;

/** Settings that allow a server to open repositories at addresses of this machine. */
export const ALLOW_PRIVATE_NETWORKS = {
  SLIPWAY_ALLOWED_PRIVATE_NETWORKS: "127.0.0.0/8,172.16.0.0/12,192.168.0.0/16,10.0.0.0/8",
};

export const makeGitImage = async (engine: Engine): Promise<void> => {
  const files = new Uint8Array(Bun.spawnSync(["sh", "-c", GIT_FILES]).stdout);
  const encodeText = (text: string): Uint8Array => new TextEncoder().encode(text);
  const dockerfile = `FROM ${IMAGE}\nUSER root\nADD git.tar /\nUSER dev\n`;
  const tar = joinStreams([
    createTarEntry("Dockerfile", encodeText(dockerfile)),
    createTarEntry("git.tar", files),
    createTarEnd(),
  ]);
  await engine.lines("build", "POST", "/build", { query: { t: GIT_IMAGE }, tar, timeout: 120_000 }, (line) => {
    const { error } = line as { error?: string };
    if (error) throw new Error(error);
  });
};

/** Adds names to the git image until disposed. */
export const tagGitImage = async (engine: Engine, names: readonly string[]): Promise<AsyncDisposable> => {
  for (const name of names) {
    const colon = name.lastIndexOf(":");
    const query = { repo: name.slice(0, colon), tag: name.slice(colon + 1) };
    await engine.json("tag", "POST", `/images/${GIT_IMAGE}/tag`, { query });
  }
  return {
    async [Symbol.asyncDispose]() {
      for (const name of names)
        await engine.json("untag", "DELETE", `/images/${name}`, { expectedStatuses: [404, 409] });
    },
  };
};

/** Returns the address at which containers reach this machine: the gateway of the engine's default network. */
export const findGateway = async (engine: Engine): Promise<string> => {
  type Network = { IPAM?: { Config?: { Gateway?: string; Subnet?: string }[] } };
  const bridge = await engine.json<Network>("find gateway", "GET", "/networks/bridge");
  const [config] = bridge?.IPAM?.Config ?? [];
  return config?.Gateway ?? config?.Subnet?.replace(/\.0\/\d+$/, ".1") ?? "";
};
