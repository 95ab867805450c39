// A local git host with repositories for tests.
import { join } from "node:path";
import type { Client } from "#src/client.ts";
import { createBareRepository, httpGitHost, runProgram } from "#test/api/external-auth/git-hosts.ts";
import { needs } from "#test/support/needs.ts";
import { makeRepository, type TestRepository } from "#test/support/repository.ts";
import { tempDirectory } from "#test/support/server.ts";
import { awaitWorkspace, createBuild } from "#test/support/workspaces.ts";

export type GitWorld = Disposable & {
  /** Returns the link to a repository of this host. */
  readonly link: (name: string) => string;
  readonly host: string;
  /** Creates a repository with these files on `main`, and returns its clone. */
  readonly publish: (name: string, files: Readonly<Record<string, string>>) => Promise<TestRepository>;
  /** Returns the folder of a hosted repository. */
  readonly getBareFolder: (name: string) => string;
};

/** Starts a git host. `canRead` accepts tokens; by default, everyone can read. `address` is the address of this machine for containers. */
export const openGitWorld = (canRead: (token: string) => boolean = () => true, address?: string): GitWorld => {
  const temp = tempDirectory();
  const hosted = join(temp.path, "hosted");
  const web = httpGitHost(needs.git.file, hosted, canRead, address && "0.0.0.0");
  const host = address === undefined ? web.url.host : `${address}:${web.url.port}`;
  const bare = (name: string): string => join(hosted, `${name}.git`);
  return {
    host,
    getBareFolder: bare,
    link: (name) => `http://${host}/${name}`,
    async publish(name, files) {
      await createBareRepository(needs.git.file, bare(name));
      for (const key of ["uploadpack.allowFilter", "uploadpack.allowAnySHA1InWant"]) {
        await runProgram([needs.git.file, "-C", bare(name), "config", key, "true"]);
      }
      const repository = makeRepository(join(temp.path, "work", name), { empty: true });
      for (const [path, text] of Object.entries(files)) repository.write(path, text);
      repository.git("add", ".");
      repository.git("commit", "-q", "--allow-empty", "-m", "first");
      repository.git("remote", "add", "hosted", bare(name));
      repository.git("push", "-q", "hosted", "main");
      return repository;
    },
    [Symbol.dispose]() {
      web[Symbol.dispose]();
      temp[Symbol.dispose]();
    },
  };
};

/** Deletes a workspace and waits until its processes have ended; otherwise they would survive the server. */
export const removeWorkspace = async (client: Client, id: string): Promise<void> => {
  await createBuild(client, id, "delete");
  await awaitWorkspace(client, id, ({ latest_build }) => latest_build.status === "deleted");
};
