// Git hosts on this machine, with the real programs: `git http-backend` behind a token check, and OpenSSH's server with one process per
// connection.
import { spawn } from "node:child_process";
import { appendFileSync, chmodSync, mkdirSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { userInfo } from "node:os";
import { join } from "node:path";

/** Runs a program until it exits, and returns its output. Throws if it fails. */
export const runProgram = async (command: string[], env?: Record<string, string>): Promise<string> => {
  const child = Bun.spawn(command, { stdin: "ignore", stdout: "pipe", stderr: "pipe", ...(env ? { env } : {}) });
  const [out, errors] = await Promise.all([child.stdout.text(), child.stderr.text()]);
  if ((await child.exited) !== 0) throw new Error(`${command.join(" ")}: ${errors}`);
  return out.trim();
};

/** Creates an empty repository that accepts pushes. */
export const createBareRepository = async (git: string, path: string): Promise<string> => {
  await runProgram([git, "init", "-q", "--bare", "--initial-branch=main", path]);
  await runProgram([git, "-C", path, "config", "http.receivepack", "true"]);
  return path;
};

/**
 * Serves the repositories below `root`. `isAccepted` receives the user name and password of a request, or an empty text.
 */
export const httpGitHost = (
  git: string,
  root: string,
  isAccepted: (token: string) => boolean,
  hostname = "127.0.0.1",
) => {
  const server = Bun.serve({
    hostname,
    port: 0,
    async fetch(request) {
      const basic = /^Basic (.+)$/.exec(request.headers.get("authorization") ?? "")?.[1] ?? "";
      const parts = Buffer.from(basic, "base64").toString().split(":");
      if (!parts.some(isAccepted)) {
        return new Response("", { status: 401, headers: { "www-authenticate": 'Basic realm="git"' } });
      }
      const { pathname, search } = new URL(request.url);
      const child = Bun.spawn([git, "http-backend"], {
        env: {
          PATH: Bun.env.PATH ?? "",
          GIT_PROJECT_ROOT: root,
          GIT_HTTP_EXPORT_ALL: "1",
          REMOTE_USER: "somebody",
          PATH_INFO: pathname,
          QUERY_STRING: search.slice(1),
          REQUEST_METHOD: request.method,
          CONTENT_TYPE: request.headers.get("content-type") ?? "",
          HTTP_CONTENT_ENCODING: request.headers.get("content-encoding") ?? "",
          GIT_PROTOCOL: request.headers.get("git-protocol") ?? "",
        },
        stdin: new Blob([await request.arrayBuffer()]),
        stdout: "pipe",
        stderr: "ignore",
      });
      const bytes = Buffer.from(await child.stdout.bytes());
      const headEnd = bytes.indexOf("\r\n\r\n");
      const lines = bytes.subarray(0, headEnd).toString().split("\r\n");
      const headers = lines.map((line) => line.split(": ") as [string, string]);
      const status = Number(headers.find(([name]) => name === "Status")?.[1]?.slice(0, 3) ?? 200);
      return new Response(new Uint8Array(bytes.subarray(headEnd + 4)), { status, headers });
    },
  });
  return { url: new URL(server.url), [Symbol.dispose]: () => void server.stop(true) };
};

/**
 * An ssh server that accepts this user with one key, and with keys that are added later. `address` is where containers reach this machine.
 */
export const sshHost = async (
  sshd: string,
  keygen: string,
  folder: string,
  public_key: string,
  address = "127.0.0.1",
) => {
  const [hostKey, keys, config] = ["host", "authorized", "config"].map((name) => join(folder, name)) as [
    string,
    string,
    string,
  ];
  await runProgram([keygen, "-q", "-t", "ed25519", "-N", "", "-f", hostKey]);
  writeFileSync(keys, `${public_key}\n`, { mode: 0o600 });
  chmodSync(folder, 0o700);
  const settings = [`HostKey ${hostKey}`, `AuthorizedKeysFile ${keys}`, "StrictModes no", "UsePAM no", "PidFile none"];
  writeFileSync(
    config,
    `${[...settings, "PasswordAuthentication no", "PermitRootLogin prohibit-password"].join("\n")}\n`,
  );
  // The folder of sshd's unprivileged process; normally only the system's start script creates it.
  if (userInfo().uid === 0) mkdirSync("/run/sshd", { recursive: true, mode: 0o755 });
  const user = await runProgram(["id", "-un"]);
  let received = "";
  const server = createServer((socket) => {
    const child = spawn(sshd, ["-i", "-e", "-f", config], { stdio: ["pipe", "pipe", "pipe"] });
    child.stderr.on("data", (text) => {
      received += text;
    });
    child.stdin.on("error", () => {});
    socket.on("error", () => child.kill());
    socket.pipe(child.stdin);
    child.stdout.pipe(socket);
  });
  await new Promise<void>((resolve) => server.listen(0, address, resolve));
  const { port } = server.address() as { port: number };
  return {
    /** Adds a deploy key as hosts do: this key can access only this repository, through `git-shell`. */
    authorize: (key: string, repository: string): void => {
      const guard = `case "$SSH_ORIGINAL_COMMAND" in *"'${repository}'"*) exec git-shell -c "$SSH_ORIGINAL_COMMAND";; esac; echo "ERROR: Repository not found." >&2; exit 1`;
      appendFileSync(keys, `restrict,command="${guard.replaceAll('"', '\\"')}" ${key}\n`);
    },
    /** A user's own ssh configuration: the host under another name. */
    configuration: (name: string) => `Host ${name}\n  HostName ${address}\n  Port ${port}\n  User ${user}\n`,
    url: (path: string) => `ssh://${user}@${address}:${port}${path}`,
    /** Returns sshd's output. */
    log: () => received,
    [Symbol.dispose]: () => void server.close(),
  };
};
