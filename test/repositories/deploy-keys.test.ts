// Deploy keys: a user creates a key for a private repository and adds it at the repository's host. The server and git in workspaces use the
// key until the user revokes it. The host in these tests is OpenSSH's server with git-shell.
import { expect, test } from "bun:test";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Static } from "@sinclair/typebox";
import { CREDENTIALS_PROBLEM } from "#base/links/repository-address.ts";
import type { AuditLogs } from "#schema/audit.ts";
import type { RepositoryFound } from "#schema/templates/repository.ts";
import type { DeployKey } from "#schema/users/deploy-key.ts";
import type { AgentGitSshKey, GitSshKey } from "#schema/users/git-ssh-key.ts";
import type { Workspace } from "#schema/workspaces/workspace.ts";
import { findRemote } from "#src/cli/server/gitssh.ts";
import { type ApiError, Client } from "#src/client.ts";
import { findDeployKeyLocation, toDeploySettingsUrl, toRepositoryName } from "#src/git/deploy-key.ts";
import { runProgram, sshHost } from "#test/api/external-auth/git-hosts.ts";
import { LOCAL } from "#test/api/external-auth/world.ts";
import { fetchStatus } from "#test/api/users/people.ts";
import { needs, testNeeding } from "#test/support/needs.ts";
import { requireSingleServer } from "#test/support/one-server.ts";
import { seedAgent } from "#test/support/seed.ts";
import { tempDirectory } from "#test/support/server.ts";
import { readStoredTexts } from "#test/support/stored.ts";
import { awaitWorkspace, openWorld } from "#test/support/workspaces.ts";
import { openGitWorld, removeWorkspace } from "./world.ts";

const DEPLOY_KEYS = "/api/v2/users/me/deploy-keys";

testNeeding(
  [needs.git, needs.ssh, needs.sshd, needs.sshKeygen, requireSingleServer("local")],
  "[DK-1] [DK-2] [DK-3] until it is revoked, a deploy key lets the server and workspaces read one private repository",
  async () => {
    using git = openGitWorld(() => false);
    await git.publish("lib", { "lib.txt": "lib" });
    const app = await git.publish("app", { "README.md": "app" });
    app.git("-c", "protocol.file.allow=always", "submodule", "add", "-q", git.getBareFolder("lib"), "lib");
    app.git("config", "-f", ".gitmodules", "submodule.lib.url", "../lib.git");
    app.git("add", ".gitmodules");
    app.git("commit", "-q", "-m", "with a submodule");
    app.git("push", "-q", "hosted", "main");
    await using world = await openWorld({ env: LOCAL });
    const { admin } = world;
    const { public_key: accountKey } = await admin.get<GitSshKey>("/api/v2/users/me/gitsshkey");
    using temp = tempDirectory();
    using host = await sshHost(needs.sshd.file, needs.sshKeygen.file, temp.path, "");
    const url = host.url(git.getBareFolder("app"));
    const readRepository = () => admin.post<RepositoryFound>("/api/v2/repositories/read", { repository: { url } });

    expect(await readRepository()).toMatchObject({ may_create_deploy_key: true });
    const key = await admin.post<DeployKey>(DEPLOY_KEYS, { url });
    expect([key.ssh_url, key.public_key]).toEqual([url, expect.stringMatching(/^ssh-ed25519 [\w+/]+=*$/)]);
    expect(Object.keys(key)).not.toContain("private_key");
    expect(await fetchStatus(admin, "POST", "/users/me/deploy-keys", { url })).toBe(409);
    const beforeAuthorization = await readRepository();
    expect(beforeAuthorization).toMatchObject({ deploy_key: { id: key.id }, may_create_deploy_key: false });
    expect(beforeAuthorization.problem).toContain("did not let your deploy key read");
    expect(beforeAuthorization.problem).toContain(new URL(url).host);

    host.authorize(key.public_key, git.getBareFolder("app"));
    // The submodule is another repository, which the account's key can read.
    host.authorize(accountKey, git.getBareFolder("lib"));
    const { plan, problem } = await readRepository();
    expect([problem, plan?.ssh_url]).toEqual(["", url]);
    const created = await admin.post<Workspace>("/api/v2/users/me/workspaces", { name: "app", repository: { url } });
    await awaitWorkspace(admin, created.id, (workspace) => findAgent(workspace)?.lifecycle_state === "ready");
    const clone = join(world.server.directory, "workspaces", created.id, "home", "app");
    const texts = ["README.md", "lib/lib.txt"].map((path) => readFileSync(join(clone, path), "utf8"));
    expect(texts).toEqual(["app", "lib"]);
    expect(await runProgram([needs.git.file, "-C", clone, "rev-parse", "--is-shallow-repository"])).toBe("true");
    expect(await runProgram([needs.git.file, "-C", clone, "remote", "get-url", "origin"])).toBe(url);
    // The server has deleted its copy of the repository.
    const copies = join(world.server.directory, "repositories", "owners", "read");
    expect(existsSync(copies) ? readdirSync(copies) : []).toEqual([]);
    expect((await readStoredTexts(world.server.directory)).filter((text) => text.includes("BEGIN OPENSSH"))).toEqual(
      [],
    );

    await admin.delete(`/api/v2/users/me/deploy-keys/${key.id}`);
    expect(await admin.get<DeployKey[]>(DEPLOY_KEYS)).toEqual([]);
    expect(await readRepository()).toMatchObject({ may_create_deploy_key: true });
    await removeWorkspace(admin, created.id);
    const { audit_logs } = await admin.get<Static<typeof AuditLogs>>(
      "/api/v2/audit?q=resource_type:deploy_key&limit=10",
    );
    expect(audit_logs.filter(({ status_code }) => status_code < 400).map(({ action }) => action)).toEqual([
      "delete",
      "create",
    ]);
  },
);

test("[DK-3] [DK-5] an agent gets its owner's deploy key only for that repository; links with passwords are rejected", async () => {
  await using world = await openWorld();
  const { server } = world;
  const seeded = await seedAgent(server);
  const owner = new Client(server.url, seeded.owner_token);
  const key = await owner.post<DeployKey>(DEPLOY_KEYS, { url: "https://github.com/Acme/app/tree/main" });
  expect(key).toMatchObject({
    url: "https://github.com/Acme/app",
    ssh_url: "ssh://git@github.com/Acme/app.git",
    settings_url: "https://github.com/Acme/app/settings/keys/new",
  });
  const fetchKeyPair = (remote?: string, token = seeded.agent_token) => {
    const query = remote === undefined ? "" : `?remote=${encodeURIComponent(remote)}`;
    return new Client(server.url, token).get<AgentGitSshKey>(`/api/v2/workspaceagents/me/gitsshkey${query}` as never);
  };
  const accountKey = await fetchKeyPair();
  const deployKey = await fetchKeyPair("ssh://github.com/Acme/app.git");
  expect([deployKey.public_key, deployKey.is_deploy_key]).toEqual([key.public_key, true]);
  expect(deployKey.private_key).not.toBe(accountKey.private_key);
  expect(await fetchKeyPair("ssh://github.com:22/Acme/app.git")).toEqual(deployKey);
  for (const otherRemote of [
    ...["ssh://github.com/Acme/app2", "ssh://gitlab.com/Acme/app", "ssh://github.com:2222/Acme/app"],
    ...["https://github.com/Acme/app", "no"],
  ])
    expect([otherRemote, await fetchKeyPair(otherRemote)]).toEqual([otherRemote, accountKey]);
  await owner.delete(`/api/v2/users/me/deploy-keys/${key.id}`);
  expect(await fetchKeyPair("ssh://github.com/Acme/app.git")).toEqual(accountKey);
  const secondKey = await owner.post<DeployKey>(DEPLOY_KEYS, { url: "git@github.com:Acme/app" });
  const otherAgent = await seedAgent(server);
  expect((await fetchKeyPair("ssh://github.com/Acme/app.git", otherAgent.agent_token)).is_deploy_key).toBeUndefined();
  const withoutUserData = await seedAgent(server, { agent: { api_key_scope: "no_user_data" } });
  const rejectedStatus = await fetchKeyPair("ssh://github.com/x/y", withoutUserData.agent_token).catch(
    (error: ApiError) => error.status,
  );
  expect(rejectedStatus as unknown).toBe(403);
  const otherOwner = new Client(server.url, otherAgent.owner_token);
  expect(await fetchStatus(otherOwner, "DELETE", `/users/me/deploy-keys/${secondKey.id}`)).toBe(404);
  for (const url of [
    "https://me:s3cret@h.example/a/b",
    "ssh://me:s3cret@h.example/a/b",
    "https://h.example/a/b?token=s3cret",
  ]) {
    const { status, body } = (await owner.post(DEPLOY_KEYS, { url }).catch((error: ApiError) => error)) as ApiError;
    expect([status, body.validations]).toEqual([400, [{ field: "url", detail: CREDENTIALS_PROBLEM }]]);
    expect(JSON.stringify([body, await owner.get<DeployKey[]>(DEPLOY_KEYS)])).not.toContain("s3cret");
    const error = (await owner
      .post("/api/v2/repositories/read", { repository: { url } })
      .catch((error: ApiError) => error)) as ApiError;
    expect([error.status, error.body.validations]).toEqual([
      400,
      [{ field: "repository.url", detail: CREDENTIALS_PROBLEM }],
    ]);
  }
  for (const url of [
    "",
    "no link",
    "file:///srv/app",
    "ssh://-oProxyCommand=x/app",
    "-x@h.example:a/b",
    "ssh://git@[::1]/a/b",
  ])
    expect([url, await fetchStatus(owner, "POST", "/users/me/deploy-keys", { url })]).toEqual([url, 400]);
});

test("[DK-4] a link determines the repository's ssh URL and the page of its host where keys are added", () => {
  const locations: readonly (readonly [string, string, string?])[] = [
    ["git@github.com:acme/app.git", "ssh://git@github.com/acme/app.git", "/acme/app/settings/keys/new"],
    [
      "https://gitlab.com/a/b/c",
      "ssh://git@gitlab.com/a/b/c.git",
      "/a/b/c/-/settings/repository#js-deploy-keys-settings",
    ],
    ["https://codeberg.org/a/b", "ssh://git@codeberg.org/a/b.git", "/a/b/settings/keys"],
    ["https://bitbucket.org/a/b", "ssh://git@bitbucket.org/a/b.git", "/a/b/admin/access-keys/"],
    ["ssh://me@git.example.com:2222/a/b", "ssh://me@git.example.com:2222/a/b"],
    ["https://git.example.com/projects/ab/repos/c/browse", "ssh://git@git.example.com:7999/ab/c.git"],
  ];
  for (const [link, ssh_url, settingsPath] of locations) {
    const location = findDeployKeyLocation(link);
    expect([link, location?.ssh_url]).toEqual([link, ssh_url]);
    const settings = location && toDeploySettingsUrl(location.url, undefined);
    expect([link, settings]).toEqual([link, settingsPath && `${new URL(location?.url ?? "").origin}${settingsPath}`]);
  }
  expect(toDeploySettingsUrl("https://git.example.com/a/b", "gitea")).toBe("https://git.example.com/a/b/settings/keys");
  expect(toRepositoryName("ssh://git@Host:22//a/b.git/")).toBe("host/a/b");
  const sshCalls: readonly (readonly [readonly string[], string])[] = [
    [["-o", "SendEnv=GIT_PROTOCOL", "git@h.example", "git-upload-pack 'a/b.git'"], "ssh://h.example/a/b.git"],
    [["-p", "2222", "--", "h", "git-lfs-authenticate /a/b.git download"], "ssh://h:2222/a/b.git"],
    [["-4Tp2222", "me@h", "git-upload-pack '/a/b'"], "ssh://h:2222/a/b"],
    [["-oPort=2222", "-o", "port 22", "h", "git-upload-pack '/a/b'"], "ssh://h:2222/a/b"],
    [["-p", "22", "ssh://me@h:2222/", "git-upload-pack '/a/b'"], "ssh://h:2222/a/b"],
    [["-P", "tag", "ssh://h", "git-upload-pack '/a/b'"], "ssh://h/a/b"],
    [["h", "git-receive-pack '/a/b'"], "ssh://h/a/b"],
    [["h"], ""],
    [["-G", "h"], ""],
    [["h", "rm -rf x"], ""],
  ];
  for (const [argv, remote] of sshCalls) expect([argv, findRemote(argv)]).toEqual([argv, remote]);
});

const findAgent = ({ latest_build }: Workspace) => latest_build.resources[0]?.agents?.[0];
