// The real OpenSSH client, scp, sftp, rsync and git reach a real local workspace with the configuration from `slipway config-ssh`.
import { describe, expect, test } from "bun:test";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { forFile } from "#test/support/for-file.ts";
import { scaleTimeout } from "#test/support/pace.ts";
import { until } from "#test/support/until.ts";
import { openDevWorld, type RunResult } from "./client-world.ts";

const world = await forFile(openDevWorld());
await world.runOk(["config-ssh"]);
const files = join(world.home, "files");
mkdirSync(files);

/** Runs a shell line. `$F` is the path of OpenSSH's configuration, because OpenSSH does not use `$HOME` to find it. */
const sh = async (line: string, stdin = ""): Promise<RunResult> => {
  const env = { HOME: world.home, PATH: `${world.home}/bin:${process.env.PATH}`, F: `${world.home}/.ssh/config` };
  const child = Bun.spawn(["sh", "-c", line], {
    cwd: files,
    env,
    stdio: [new TextEncoder().encode(stdin), "pipe", "pipe"],
  });
  const [out, err, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
  return { code, out, err };
};
const runOk = async (line: string, stdin = ""): Promise<string> => {
  const { code, out, err } = await sh(line, stdin);
  if (code !== 0) throw new Error(`${line}: ${code} ${err}`);
  return out;
};
/** Writes a file of this size in the client's folder and returns its name. */
const writeRandomFile = (name: string, bytes: number): string => {
  const data = crypto.getRandomValues(new Uint8Array(65_536));
  writeFileSync(
    join(files, name),
    new Uint8Array(bytes).map((_, i) => (data[i % data.byteLength] as number) ^ (i >> 16)),
  );
  return name;
};
const isInstalled = (program: string): boolean => Bun.which(program) !== null;

describe.if(isInstalled("ssh"))("OpenSSH", () => {
  test("[CN-3] [CN-4] [WN-2] [WN-3] runs commands with and without a terminal, and passes variables", async () => {
    expect(await sh('ssh -F "$F" slipway.dev "cat; exit 3"', "through")).toMatchObject({ code: 3, out: "through" });
    expect(await runOk("ssh -F \"$F\" -o SetEnv=FOO=bar slipway.dev.main 'echo $FOO'")).toBe("bar\n");
    expect(await runOk('ssh -F "$F" -tt slipway.dev "tty; stty size"')).toMatch(/^\/dev\/pts\/\d+\r\n\d+ \d+\r\n$/);
    expect((await sh('ssh -F "$F" slipway.nothing true')).code).toBe(255);
  });

  test("[WN-4] forwards ports and sockets both ways, and several sessions share a connection", async () => {
    using app = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => new Response("from the app") });
    const placeholder = createServer().listen(0, "127.0.0.1");
    const { port } = placeholder.address() as { port: number };
    await new Promise((resolve) => placeholder.close(resolve));
    const control = `-F "$F" -o ControlPath=${files}/control`;
    await runOk(
      `ssh ${control} -o ControlMaster=yes -N -f -L ${port}:127.0.0.1:${app.port} -L ${files}/local:127.0.0.1:${app.port} slipway.dev >/dev/null 2>&1`,
    );
    try {
      const get = async (options: RequestInit & { unix?: string }, url: string) => (await fetch(url, options)).text();
      expect(await get({}, `http://127.0.0.1:${port}/`)).toBe("from the app");
      expect(await get({ unix: `${files}/local` }, "http://app/")).toBe("from the app");
      expect(await runOk(`ssh ${control} slipway.dev "echo shared"`)).toBe("shared\n");
      const remotePort = await runOk(`ssh ${control} -O forward -R 0:127.0.0.1:${app.port} slipway.dev`);
      const fetched = await runOk(
        `ssh ${control} slipway.dev 'exec 3<>/dev/tcp/127.0.0.1/${remotePort.trim()}; printf "GET / HTTP/1.0\\r\\n\\r\\n" >&3; cat <&3'`,
      );
      expect(fetched).toEndWith("from the app");
      await runOk(`ssh ${control} -O forward -R ${files}/remote:127.0.0.1:${app.port} slipway.dev`);
      expect(await get({ unix: `${files}/remote` }, "http://app/")).toBe("from the app");
    } finally {
      await sh(`ssh ${control} -O exit slipway.dev`);
    }
  });

  test.if(isInstalled("ssh-agent") && isInstalled("ssh-add") && isInstalled("ssh-keygen"))(
    "[WN-4] forwards the client's agent",
    async () => {
      const output = await runOk(
        `ssh-keygen -q -t ed25519 -N "" -C carried -f key && eval $(ssh-agent -s) >&2 && ssh-add -q key && ssh -F "$F" -A slipway.dev "ssh-add -l"; kill $SSH_AGENT_PID`,
      );
      expect(output).toContain("carried (ED25519)");
    },
  );

  test.if(isInstalled("Xvfb") && isInstalled("xauth") && isInstalled("xterm"))(
    "[WN-9] shows the workspace's programs on the client's display, and removes display and cookie afterwards",
    async () => {
      const screen = Bun.spawn(["Xvfb", "-displayfd", "1", "-nolisten", "tcp"], {
        stdio: ["ignore", "pipe", "ignore"],
      });
      try {
        const { value } = await screen.stdout.getReader().read();
        const display = `:${new TextDecoder().decode(value).trim()}`;
        const command = "xauth list | wc -l; xterm -e true && echo shown; echo $DISPLAY";
        const output = await runOk(`DISPLAY=${display} ssh -F "$F" -Y slipway.dev '${command}'`);
        expect(output).toMatch(/^1\nshown\nlocalhost:\d+\.0\n$/);
        await until(async () => (await runOk('ssh -F "$F" slipway.dev "xauth list | wc -l"')) === "0\n");
        const withoutForwarding = `DISPLAY=${display} ssh -F "$F" slipway.dev 'echo "[$DISPLAY]"'`;
        expect(await runOk(withoutForwarding)).toBe("[]\n");
      } finally {
        screen.kill();
        await screen.exited;
      }
    },
  );

  test("[WN-2] [WN-3] when the client dies, a command on a terminal gets SIGHUP, and one without a terminal continues", async () => {
    const startSsh = async (flag: string, command: string) => {
      const args = ["ssh", "-F", `${world.home}/.ssh/config`, flag, "slipway.dev", command];
      const env = { HOME: world.home, PATH: `${world.home}/bin:${process.env.PATH}` };
      const child = Bun.spawn(args, { cwd: files, env, stdio: ["pipe", "pipe", "ignore"] });
      const reader = child.stdout.getReader();
      for (let output = ""; !output.includes("begun"); )
        output += new TextDecoder().decode((await reader.read()).value);
      child.kill("SIGKILL");
      await child.exited;
    };
    const waitForFile = (name: string): Promise<unknown> => until(async () => existsSync(join(files, name)));
    // The command ends when the file `go-on` exists, long after its SSH client was killed.
    await startSsh("-T", `echo begun; until [ -e ${files}/go-on ]; do sleep 0.1; done; echo > ${files}/went-on`);
    await startSsh("-tt", `trap 'echo > ${files}/hung-up; exit' HUP; echo begun; while :; do sleep 0.1; done`);
    await waitForFile("hung-up");
    writeFileSync(join(files, "go-on"), "");
    await waitForFile("went-on");
  });
});

describe.if(isInstalled("scp") && isInstalled("sftp"))("files", () => {
  test(
    "[WN-5] scp copies both ways with either protocol, including trees with modes and times",
    async () => {
      writeRandomFile("big", 2_500_000);
      await runOk('scp -q -F "$F" -p big slipway.dev:there && scp -q -F "$F" slipway.dev:there back && cmp big back');
      await runOk('scp -q -O -F "$F" slipway.dev:there old && cmp big old');
      await runOk(
        "mkdir -p tree/in && echo one > tree/a && echo two > tree/in/b && chmod 640 tree/in/b && ln -s a tree/link",
      );
      await runOk('scp -q -r -p -F "$F" tree slipway.dev:copied && scp -q -r -p -F "$F" slipway.dev:copied again');
      expect(await runOk("cat again/a again/in/b; stat -c %a again/in/b")).toBe("one\ntwo\n640\n");
    },
    scaleTimeout(180_000),
  );

  test("[WN-5] sftp lists, renames, links and removes files, and exits at the end of its batch", async () => {
    writeRandomFile("part", 300_000);
    const batch = [
      ...[
        "mkdir work",
        "cd work",
        "put part whole",
        "rename whole moved",
        "symlink moved link",
        "ln moved hard",
        "chmod 600 moved",
      ],
      ...["ls -la", "get link back-by-link", "rm hard", "rm link", "rm moved", "cd ..", "rmdir work", "pwd"],
    ];
    const { code, out, err } = await sh('sftp -F "$F" -b - slipway.dev', `${batch.join("\n")}\n`);
    expect({ code, err }).toMatchObject({ code: 0 });
    expect(out).toMatch(/-rw-------.* 300000 .*moved/);
    expect(out).toMatch(/lrwxrwxrwx.*link/);
    expect(await sh("cmp part back-by-link")).toMatchObject({ code: 0 });
    expect((await sh('sftp -F "$F" -b - slipway.dev', "get nothing-there\n")).err).toContain("not found");
    expect((await sh('sftp -F "$F" -b - slipway.dev', "ls /root/nothing\n")).code).toBe(1);
  });

  test("[WN-11] refuses SFTP into a container instead of falling back to the workspace's files", async () => {
    const { code, err } = await sh('sftp -F "$F" -o SetEnv=CODER_CONTAINER=box -b - slipway.dev', "pwd\n");
    expect(code).not.toBe(0);
    expect(err).toContain("SFTP is not available in containers");
    const inside = await sh('ssh -F "$F" -o SetEnv=CODER_CONTAINER=box slipway.dev true');
    // If this machine has a container engine, the engine has no such container.
    expect([126, 255]).toContain(inside.code);
    expect(inside.err).toMatch(/no container engine|No such container/);
  });

  test.if(isInstalled("rsync"))("[CN-3] rsync copies a tree, and then only its changes", async () => {
    await runOk("mkdir -p source && for i in 1 2 3 4 5; do echo file-$i > source/$i; done");
    const rsync = 'rsync -a --stats -e "ssh -F $F"';
    await runOk(`${rsync} source/ slipway.dev:target/`);
    await runOk("echo changed > source/3");
    expect(await runOk(`${rsync} source/ slipway.dev:target/`)).toContain("Number of regular files transferred: 1");
    await runOk(`${rsync} slipway.dev:target/ returned/ && diff -r source returned`);
  });

  test.if(isInstalled("git"))("[CN-3] git clones, fetches and pushes over ssh", async () => {
    const git = 'GIT_SSH_COMMAND="ssh -F $F" git -c user.name=A -c user.email=a@b.c';
    await runOk('ssh -F "$F" slipway.dev "git init -q --bare store.git"');
    await runOk(
      `${git} clone -q slipway.dev:store.git clone && cd clone && echo text > file && git add file && ${git} commit -qm first && ${git} push -q origin HEAD:main`,
    );
    await runOk(`${git} clone -q -b main slipway.dev:store.git second`);
    expect(readFileSync(join(files, "second", "file"), "utf8")).toBe("text\n");
  });
});
