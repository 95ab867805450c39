// Git in a real workspace: it clones and pushes over https with the owner's linked account, and over ssh with the owner's key, without
// setup. The hosts are git's http-backend and OpenSSH's server.
import { expect, test } from "bun:test";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { systemClock } from "#base/clock.ts";
import type { AgentLog } from "#schema/agents/agent-log.ts";
import type { GitSshKey } from "#schema/users/git-ssh-key.ts";
import type { Build } from "#schema/workspaces/build.ts";
import type { Workspace } from "#schema/workspaces/workspace.ts";
import { run as externalAuth } from "#src/cli/server/external-auth.ts";
import { run as askpass } from "#src/cli/server/gitaskpass.ts";
import { EXIT, type RunVerb } from "#src/cli/verb.ts";
import { ServerSlot } from "#test/crash/server.ts";
import { needs, testNeeding } from "#test/support/needs.ts";
import { requireSingleServer } from "#test/support/one-server.ts";
import { makeRepository } from "#test/support/repository.ts";
import { ADMIN } from "#test/support/server.ts";
import { makeTemplate } from "#test/support/templates.ts";
import { until } from "#test/support/until.ts";
import { awaitWorkspace, createBuild } from "#test/support/workspaces.ts";
import { createBareRepository, httpGitHost, runProgram, sshHost } from "./git-hosts.ts";
import { FakeProvider } from "./provider.ts";
import { LOCAL, link } from "./world.ts";

const buildPushScript = (url: string, name: string): string =>
  [
    `git clone -q ${url} ${name}`,
    `(cd ${name} && git checkout -q -B main && echo of ${name} > file && git add file && git commit -qm first && git push -q origin main)`,
    `echo pushed ${name}`,
  ].join("\n");

testNeeding(
  [needs.git, needs.ssh, needs.sshd, needs.sshKeygen, requireSingleServer("needsLocalServerProcess")],
  "[EA-17] [EA-18] a startup script clones and pushes with the owner's linked account or ssh key",
  async () => {
    using provider = new FakeProvider();
    await using serverPlace = await ServerSlot.make();
    const root = join(serverPlace.scratch, "hosted");
    for (const name of ["", "/ssh"]) mkdirSync(root + name, { recursive: true });
    await createBareRepository(needs.git.file, join(root, "web.git"));
    const sshRepository = await createBareRepository(needs.git.file, join(root, "secure.git"));
    using web = httpGitHost(needs.git.file, root, (token) => provider.isActiveToken(token));
    const setting = provider.setting("git", { regex: `^${web.url.origin}/` });
    await serverPlace.start({ env: { ...LOCAL, SLIPWAY_EXTERNAL_AUTH: JSON.stringify([setting]) } });
    const admin = await serverPlace.client.signIn(ADMIN.email, ADMIN.password);
    const { public_key } = await admin.get<GitSshKey>("/api/v2/users/me/gitsshkey");
    using secure = await sshHost(needs.sshd.file, needs.sshKeygen.file, join(root, "ssh"), public_key);
    const script = [
      ...["set -e", 'cd "$HOME"', 'export TMPDIR="$HOME/tmp"', 'mkdir "$TMPDIR"'],
      ...["git config --global user.email a@example.com", "git config --global user.name A"],
      buildPushScript(new URL("web.git", web.url).href, "web"),
      buildPushScript(secure.url(sshRepository), "secure"),
      `cat > .ssh/config <<END\n${secure.configuration("nick")}END`,
      `git ls-remote ssh://nick${sshRepository} main`,
      // The key file exists only while ssh runs.
      'echo "all done, $(ls "$TMPDIR" | wc -l) files left"',
    ].join("\n");
    const scripts = [{ display_name: "Git", script, run_on_start: true }];
    const resources = [{ name: "main", agents: [{ name: "main", scripts }] }];
    const template = await makeTemplate(admin, JSON.stringify({ provisioner: "local", resources }));
    const body = { name: "dev", template_id: template.id };
    const { latest_build } = await admin.post<Workspace>("/api/v2/users/me/workspaces", body);
    using log = await admin.socket(`/api/v2/workspacebuilds/${latest_build.id}/logs?follow`);
    await log.closed;
    const build = await admin.get<Build>(`/api/v2/workspacebuilds/${latest_build.id}`);
    const agent = build.resources[0]?.agents?.[0];
    using follower = await admin.socket(`/api/v2/workspaceagents/${agent?.id}/logs?follow`);
    const received: string[] = [];
    const awaitLogLine = async (words: string): Promise<void> => {
      while (!received.some((line) => line.includes(words))) {
        const lines = (await follower.json<AgentLog[]>()).map(({ output }) => output);
        received.push(...lines);
        if (lines.some((line) => /fatal|denied/.test(line))) throw new Error(`${received.join("\n")}\n${secure.log()}`);
      }
    };
    await awaitLogLine("link your account at");
    expect(received.at(-1)).toContain(new URL("/external-auth/git", serverPlace.client.url).href);
    await link(admin, provider, "git");
    await awaitLogLine("all done");
    for (const name of ["web", "secure"]) {
      const repository = join(root, `${name}.git`);
      expect(await runProgram([needs.git.file, "-C", repository, "show", "main:file"])).toBe(`of ${name}`);
    }
    expect(received.at(-1)).toContain("done, 0 files left");
    // No token has leaked into the log.
    expect(received.filter((line) => line.includes("canary"))).toEqual([]);
  },
);

testNeeding(
  [needs.git, needs.ssh, needs.sshd, needs.sshKeygen, requireSingleServer("needsLocalServerProcess")],
  "[DF-4] installs private dotfiles with the owner's account or key; without them, the log says why it failed",
  async () => {
    using provider = new FakeProvider();
    await using serverPlace = await ServerSlot.make();
    const root = join(serverPlace.scratch, "hosted");
    for (const name of ["", "/ssh"]) mkdirSync(root + name, { recursive: true });
    for (const name of ["web", "secure"]) {
      const bareRepository = await createBareRepository(needs.git.file, join(root, `${name}.git`));
      const repository = makeRepository(join(root, "work", name), { empty: true });
      repository.write(".vimrc", `of ${name}`);
      repository.git("add", ".");
      repository.git("commit", "-qm", "first");
      repository.git("push", "-q", bareRepository, "main");
    }
    using web = httpGitHost(needs.git.file, root, (token) => provider.isActiveToken(token));
    const setting = provider.setting("git", { regex: `^${web.url.origin}/` });
    await serverPlace.start({ env: { ...LOCAL, SLIPWAY_EXTERNAL_AUTH: JSON.stringify([setting]) } });
    const admin = await serverPlace.client.signIn(ADMIN.email, ADMIN.password);
    const { public_key } = await admin.get<GitSshKey>("/api/v2/users/me/gitsshkey");
    using secure = await sshHost(needs.sshd.file, needs.sshKeygen.file, join(root, "ssh"), public_key);
    const scripts = [{ display_name: "Own", script: 'cat "$HOME/.vimrc" || true', run_on_start: true }];
    const resources = [{ name: "main", agents: [{ name: "main", scripts }] }];
    const template = await makeTemplate(admin, JSON.stringify({ provisioner: "local", resources }));
    const setUrl = (url: string) => admin.put("/api/v2/users/me/dotfiles", { url });
    /**
     * Waits until the scripts of the latest build have ended and the log contains `words`, because each script's output arrives separately.
     * Returns the agent, the status of the dotfiles script, and the log.
     */
    const awaitStartLog = async (id: string, words = "") => {
      const { latest_build } = await awaitWorkspace(admin, id, (workspace) =>
        listAgents(workspace).some(
          ({ scripts, lifecycle_state }) => lifecycle_state === "ready" && scripts.every(({ status }) => status),
        ),
      );
      const [agent] = listAgents({ latest_build });
      const lines = await until(async () => {
        const logs = await admin.get<AgentLog[]>(`/api/v2/workspaceagents/${agent?.id}/logs`);
        return logs.some(({ output }) => output.includes(words)) && logs.map(({ output }) => output);
      });
      return { agent, status: agent?.scripts.find(({ is_dotfiles }) => is_dotfiles)?.status, output: lines.join("\n") };
    };
    await setUrl(new URL("web.git", web.url).href);
    const { id } = await admin.post<Workspace>("/api/v2/users/me/workspaces", {
      name: "dev",
      template_id: template.id,
    });
    const unlinked = await awaitStartLog(id, "link your account at");
    expect([unlinked.status, unlinked.agent?.lifecycle_state]).toEqual(["exit_failure", "ready"]);
    expect(unlinked.output).toContain(
      `link your account at ${new URL("/external-auth/git", serverPlace.client.url).href}`,
    );

    const restart = async () => {
      for (const transition of ["stop", "start"] as const) {
        await createBuild(admin, id, transition);
        const status = transition === "stop" ? "stopped" : "running";
        await awaitWorkspace(admin, id, ({ latest_build }) => latest_build.status === status);
      }
      return awaitStartLog(id, "of ");
    };
    await link(admin, provider, "git");
    const byAccount = await restart();
    expect([byAccount.status, byAccount.output.includes("of web")]).toEqual(["ok", true]);
    await setUrl(secure.url(join(root, "secure.git")));
    const byKey = await restart();
    expect([byKey.status, byKey.output.includes("of secure")]).toEqual(["ok", true]);
    expect(`${byAccount.output}${byKey.output}`).not.toContain("canary");
  },
);

const listAgents = ({ latest_build }: Pick<Workspace, "latest_build">) =>
  latest_build.resources.flatMap(({ agents = [] }) => agents);

/** Runs the verb as git calls it, against a server that the test simulates. */
const runAskpass = async (prompt: string, respond: (url: URL) => Response | Promise<Response>) =>
  runVerb(askpass, [prompt], respond);

const runVerb = async (
  verb: RunVerb,
  argv: string[],
  respond: (url: URL) => Response | Promise<Response>,
  env: Readonly<Record<string, string>> = {},
) => {
  const urls: URL[] = [];
  await using server = {
    running: Bun.serve({
      hostname: "127.0.0.1",
      port: 0,
      fetch(request) {
        urls.push(new URL(request.url));
        return respond(new URL(request.url));
      },
    }),
    [Symbol.asyncDispose]: () => server.running.stop(true),
  };
  const printed: string[] = [];
  const errors: string[] = [];
  const code = await verb({
    argv,
    env: {
      SLIPWAY_AGENT_URL: server.running.url.origin,
      SLIPWAY_AGENT_TOKEN: "11111111-2222-4333-8444-555555555555",
      ...env,
    },
    readFile: () => "",
    signal: new AbortController().signal,
    clock: { ...systemClock, after: (_, later) => systemClock.after(0, later) },
    isTerminal: false,
    print: (text) => printed.push(text),
    printError: (text) => errors.push(text),
  });
  return { code, printed, errors, urls };
};

const linked = {
  access_token: "t0ken",
  username: "oauth2",
  password: "t0ken",
  type: "gitlab",
  url: "",
  token_extra: {},
};

test("[EA-18] answers git's username and password prompts, without exposing a token as the username", async () => {
  const name = await runAskpass("Username for 'https://git.example': ", () => Response.json(linked));
  expect([name.code, name.printed, name.errors]).toEqual([EXIT.ok, ["oauth2"], []]);
  const password = await runAskpass("Password for 'https://t0ken:x@git.example/a/b.git': ", () =>
    Response.json(linked),
  );
  expect([password.code, password.printed]).toEqual([EXIT.ok, ["t0ken"]]);
  expect(password.urls.map(({ searchParams }) => searchParams.get("match"))).toEqual(["https://git.example/a/b.git"]);
  // User names that look like another host, as older versions of git print them, and text around the prompt.
  for (const prompt of [
    "Password for 'https://git.example/@evil.example': ",
    "Password for 'https://evil.example/@git.example': ",
    "Username for 'https://evil.example' 'https://git.example': ",
  ]) {
    const ambiguous = await runAskpass(prompt, () => Response.json(linked));
    expect([ambiguous.printed, ambiguous.urls]).toEqual([[], []]);
  }
  // Git shows the username in the next prompt, which is visible in the process list.
  const generic = { ...linked, type: "generic", username: "t0ken", password: "" };
  for (const [prompt, printed] of [
    ["Username for 'https://git.example': ", "x-access-token"],
    ["Password for 'https://x-access-token@git.example': ", "t0ken"],
  ] as const) {
    expect((await runAskpass(prompt, () => Response.json(generic))).printed).toEqual([printed]);
  }
});

test("[DF-4] prints where to link an account and fails when SLIPWAY_GIT_NO_WAIT is set", async () => {
  const unlinked = {
    ...linked,
    username: "",
    password: "",
    access_token: "",
    url: "https://slipway.example/external-auth/git",
  };
  const result = await runVerb(askpass, ["Username for 'https://git.example': "], () => Response.json(unlinked), {
    SLIPWAY_GIT_NO_WAIT: "1",
  });
  expect([result.code, result.errors.join(""), result.urls.length]).toEqual([
    EXIT.failed,
    "slipway: to continue, link your account at https://slipway.example/external-auth/git\n",
    1,
  ]);
});

test("[EA-19] prints nothing for an unknown host, reports other rejections, and waits across a server restart", async () => {
  const unlinked = await runAskpass("Username for 'https://elsewhere.example': ", () =>
    Response.json({ message: "no" }, { status: 404 }),
  );
  expect([unlinked.code, unlinked.printed, unlinked.errors]).toEqual([EXIT.failed, [], []]);
  const withoutTls = await runAskpass("Username for 'http://git.example': ", () =>
    Response.json({ message: "No TLS.", detail: "Use https." }, { status: 404 }),
  );
  expect([withoutTls.code, withoutTls.errors]).toEqual([EXIT.failed, ["slipway gitaskpass: No TLS. Use https.\n"]]);
  const rejected = await runAskpass("Username for 'https://git.example': ", () =>
    Response.json({ message: "No." }, { status: 403 }),
  );
  expect([rejected.code, rejected.printed, rejected.errors]).toEqual([EXIT.failed, [], ["slipway gitaskpass: No.\n"]]);
  let waitCount = 0;
  const success = await runAskpass("Username for 'https://git.example': ", (url) => {
    if (!url.searchParams.has("listen"))
      return Response.json({ ...linked, url: "https://slipway.example/external-auth/git" });
    return ++waitCount < 3 ? Response.json({ message: "Stopping." }, { status: 503 }) : Response.json(linked);
  });
  expect([success.code, success.printed, waitCount]).toEqual([EXIT.ok, ["oauth2"], 3]);
  expect(success.errors.join("")).toContain("https://slipway.example/external-auth/git");
});

test("[EA-21] prints the owner's token by provider ID, or where to link an account", async () => {
  const argv = ["access-token", "github"];
  const result = await runVerb(externalAuth, argv, () => Response.json(linked));
  expect([result.code, result.printed, result.urls[0]?.search]).toEqual([EXIT.ok, ["t0ken"], "?id=github"]);
  const page = "https://slipway.example/external-auth/github";
  const unlinked = await runVerb(externalAuth, argv, () => Response.json({ ...linked, access_token: "", url: page }));
  expect([unlinked.code, unlinked.printed]).toEqual([EXIT.failed, [page]]);
  const missing = await runVerb(externalAuth, argv, () => Response.json({ message: "Not found." }, { status: 404 }));
  expect([missing.code, missing.printed, missing.errors]).toEqual([
    EXIT.failed,
    [],
    ["slipway external-auth: Not found.\n"],
  ]);
});
