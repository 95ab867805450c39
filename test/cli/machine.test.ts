// The commands for administrators on the server's machine: accounts and tokens in a data directory, and their effect on a server.
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { createServer } from "node:net";
import { userInfo } from "node:os";
import { join } from "node:path";
import { Client } from "#src/client.ts";
import { ManualClock } from "#test/support/manual-clock.ts";
import { ADMIN, startTestServer, tempDirectory } from "#test/support/server.ts";
import { command } from "../crash/server.ts";
import { runVerb, type VerbResult } from "./run-verb.ts";

let temp: ReturnType<typeof tempDirectory>;
let data: string;

beforeEach(() => {
  temp = tempDirectory();
  data = join(temp.path, "data");
});
afterEach(() => temp[Symbol.dispose]());

/** Runs a command on the data directory; `secret` is the content of a password file. */
const runSlipway = (line: string, secret?: string): Promise<VerbResult> =>
  runVerb([...line.split(" "), "--data-dir", data], { files: secret === undefined ? {} : { secret } });

const runOk = async (line: string, secret?: string): Promise<string> => {
  const { code, printed, errors } = await runSlipway(line, secret);
  if (code !== 0) throw new Error(`slipway ${line}: ${code} ${errors}`);
  return printed;
};

const setUp = () =>
  runOk("offline setup root --email root@example.com --password-file secret", "root of all, at home\n");

const signIn = async (email: string, password: string): Promise<number> => {
  await using server = await startTestServer({ directory: data });
  const response = await new Client(server.url).fetch("POST", "/api/v2/users/login", { email, password });
  return response.status;
};

describe("offline setup, users and tokens", () => {
  test("[OP-8] `setup` creates the directory, its key and an owner who can sign in; a second setup is refused", async () => {
    expect(await setUp()).toBe("Created the owner root.\n");
    expect(statSync(join(data, "encryption.key")).mode & 0o777).toBe(0o600);
    expect(await signIn("root@example.com", "root of all, at home")).toBe(201);
    const secondSetup = await runSlipway("offline setup other --email other@example.com");
    expect([secondSetup.code, secondSetup.errors]).toEqual([
      1,
      "slipway offline setup: The first user already exists.\n",
    ]);
  });

  test("[OP-8] users are created, listed, suspended and activated with the same rules as in the API", async () => {
    await setUp();
    const created = JSON.parse(
      await runOk("offline users create alice --email alice@example.com --roles auditor --json"),
    );
    expect(created.password).toHaveLength(22);
    const listed = JSON.parse(await runOk("offline users list --json")) as { username: string; roles: string[] }[];
    expect(listed.map(({ username, roles }) => [username, roles])).toEqual([
      ["alice", ["auditor"]],
      ["root", ["owner"]],
    ]);
    expect(await runOk("offline users list")).toMatch(
      /^USERNAME .*\nalice +alice@example.com +active +auditor +never\nroot/,
    );
    await runOk("offline tokens create --user alice --name ci --lifetime 24h");
    expect(await runOk("offline users suspend alice@example.com")).toBe("alice is suspended.\n");
    expect(JSON.parse(await runOk("offline tokens list --user alice --json"))).toEqual([]);
    expect(await signIn("alice@example.com", created.password)).toBeGreaterThanOrEqual(400);
    await runOk("offline users activate alice");
    expect(await signIn("alice@example.com", created.password)).toBe(201);
    const refused: [string, string, string?][] = [
      ["offline users create alice --email other@example.com", "username"],
      ["offline users create bob --email nowhere", "email"],
      ["offline users create me --email me@example.com", "reserved"],
      ["offline users create bob --email bob@example.com --roles king", "king"],
      ["offline users create bob --email bob@example.com --password-file secret", "at least 12", "short\n"],
      ["offline users suspend root", "last owner"],
      ["offline users suspend missing", "There is no user"],
      ["offline users reset-password prebuilds", "There is no user"],
    ];
    for (const [line, expected, secret] of refused) {
      const { code, errors } = await runSlipway(line, secret);
      expect([line, code]).toEqual([line, 1]);
      expect(errors).toContain(expected);
    }
  });

  test("[OP-8] resetting a forgotten password on the machine revokes every session and token", async () => {
    await setUp();
    const token = (await runOk("offline tokens create --user root --name ci --lifetime 24h")).trim();
    expect(await runOk("offline users reset-password root --password-file secret", "another one, better")).toContain(
      "were revoked",
    );
    expect(JSON.parse(await runOk("offline tokens list --json"))).toEqual([]);
    await using server = await startTestServer({ directory: data });
    expect((await new Client(server.url).withToken(token).fetch("GET", "/api/v2/users/me")).status).toBe(401);
    const login = { email: "root@example.com", password: "another one, better" };
    expect((await new Client(server.url).fetch("POST", "/api/v2/users/login", login)).status).toBe(201);
  });

  test("[OP-8] a token is shown once, works until it is revoked, and is listed without its secret", async () => {
    await setUp();
    const created = JSON.parse(await runOk("offline tokens create --user root --name ci --json")) as {
      id: string;
      token: string;
    };
    const fetchStatus = async (): Promise<number> => {
      await using server = await startTestServer({ directory: data });
      return (await new Client(server.url).withToken(created.token).fetch("GET", "/api/v2/users/me")).status;
    };
    expect(await fetchStatus()).toBe(200);
    const listed = await runOk("offline tokens list --user root");
    expect(listed).toContain(created.id);
    expect(listed).not.toContain(created.token);
    expect((await runSlipway("offline tokens create --user root --name ci")).errors).toContain("name");
    expect((await runSlipway("offline tokens create --user root --lifetime 9999h")).errors).toContain("lifetime");
    await runOk("offline tokens revoke ci --user root");
    expect(await fetchStatus()).toBe(401);
    expect((await runSlipway(`offline tokens revoke ${created.id}`)).errors).toContain("There is no token");
  });

  test("[OP-9] commands are refused while a server runs, without a database, and with wrong usage", async () => {
    expect((await runSlipway("offline users list")).errors).toContain("there is no database");
    expect((await runSlipway("migrate")).errors).toContain("there is no database");
    expect(existsSync(data)).toBe(false);
    await setUp();
    {
      await using _server = await startTestServer({ directory: data });
      for (const line of [
        "offline users list",
        "offline tokens list",
        "migrate",
        "offline users reset-password root",
      ]) {
        const { code, errors } = await runSlipway(line);
        expect([line, code]).toEqual([line, 1]);
        expect(errors).toContain("in use by another Slipway process; stop the server first");
      }
    }
    const withUnusedOptions = [
      "offline users reset-password root --email x@y.zz",
      "offline users list --roles owner",
      "offline tokens revoke x --name y",
    ];
    for (const line of [
      ...[
        "offline users",
        "offline users fly",
        "offline users create",
        "offline users create x",
        "offline tokens revoke",
        "offline users list --colour red",
      ],
      ...withUnusedOptions,
    ]) {
      expect([line, (await runSlipway(line)).code]).toEqual([line, 2]);
    }
    const severalLines = await runSlipway(
      "offline users create x --email a@b.c --password-file secret",
      "one line\nand another\n",
    );
    expect([severalLines.code, severalLines.errors]).toEqual([2, expect.stringContaining("more than one line")]);
    expect((await runSlipway("offline users create x --email a@b.c --password-file /nowhere/at/all")).errors).toContain(
      "cannot be read",
    );
  });

  test("[OP-9] migrate --check reports pending steps and changes nothing", async () => {
    expect(JSON.parse(await runOk("migrate --check --json"))).toMatchObject({ exists: false });
    expect(existsSync(data)).toBe(false);
    await setUp();
    expect(await runOk("migrate --check")).toStartWith("The database is up to date");
    expect(await runOk("migrate")).toBe("The database was already up to date.\n");
  });
});

describe("the encryption key", () => {
  const keyPath = () => join(data, "encryption.key");

  /** Creates a data directory with one secret, and returns its key. */
  const createWithSecret = async (): Promise<Buffer> => {
    await using server = await startTestServer({ directory: data });
    const client = new Client(server.url);
    const { session_token } = await client.post<{ session_token: string }>("/api/v2/users/login", ADMIN);
    await client.withToken(session_token).post("/api/v2/chats/providers", { provider: "openai", api_key: "sk-sealed" });
    return readFileSync(keyPath());
  };

  test("[OP-18] is recreated only if nothing is encrypted; a missing or different key is reported with the affected data", async () => {
    const originalKey = await createWithSecret();
    rmSync(keyPath());
    const refused = await startTestServer({ directory: data }).catch((error: unknown) => error);
    expect(String(refused)).toContain(
      "encryption.key is missing, and the database has data encrypted with it: keys of model providers (1)",
    );
    expect(existsSync(keyPath())).toBe(false);
    const missing = await runVerb(["doctor", "--data-dir", data, "--address", "127.0.0.1:0"]);
    expect(missing.printed).toContain(
      "encryption.key is missing, but is needed to decrypt keys of model providers (1): restore it",
    );
    writeFileSync(keyPath(), `${"ab".repeat(32)}\n`, { mode: 0o600 });
    const result = await runVerb(["doctor", "--json", "--data-dir", data, "--address", "127.0.0.1:0"]);
    expect([result.code, result.printed]).toEqual([
      1,
      expect.stringContaining("does not match the key that encrypted keys of model providers (1)"),
    ]);
    writeFileSync(keyPath(), originalKey);
    expect((await runVerb(["doctor", "--data-dir", data, "--address", "127.0.0.1:0"])).code).toBe(0);
  });
});

test("[OP-8] files that root creates in another user's directory belong to that user", async () => {
  mkdirSync(data);
  // If the tests run as another user, everything belongs to that user anyway.
  if (userInfo().uid === 0) chownSync(data, 12_345, 12_345);
  await setUp();
  await runOk("backup");
  const restored = join(temp.path, "restored");
  mkdirSync(restored);
  if (userInfo().uid === 0) chownSync(restored, 12_345, 12_345);
  const [backup = ""] = readdirSync(join(data, "backups"));
  await runVerb(["restore", join(data, "backups", backup), "--data-dir", restored]);
  const { uid } = statSync(data);
  const created = [
    ...readdirSync(data),
    ...readdirSync(restored, { recursive: true }).map((name) => `../restored/${name}`),
  ];
  expect(created.length).toBeGreaterThan(5);
  expect(created.filter((name) => statSync(join(data, name)).uid !== uid)).toEqual([]);
});

describe("doctor", () => {
  type Finding = { name: string; status: string; detail: string };
  const runDoctor = async (line = "doctor --json", clock?: ManualClock): Promise<Map<string, Finding>> => {
    const result = await runVerb([...line.split(" "), "--data-dir", data, "--address", "127.0.0.1:0"], { clock });
    const { ok, findings: found } = JSON.parse(result.printed) as { ok: boolean; findings: Finding[] };
    expect(result.code).toBe(ok ? 0 : 1);
    expect(ok).toBe(found.every(({ status }) => status !== "wrong"));
    return new Map(found.map((finding) => [finding.name, finding]));
  };

  test("[OP-10] finds no problem with a running server or before the first start", async () => {
    expect((await runDoctor()).get("data directory")?.detail).toContain("does not exist yet");
    expect(existsSync(data)).toBe(false);
    await using _server = await startTestServer({ directory: data });
    const found = await runDoctor();
    expect(found.get("server")?.detail).toContain("runs");
    expect(found.get("database")?.detail).toContain("intact");
    expect([...found.values()].filter(({ status }) => status === "wrong")).toEqual([]);
    expect((await runVerb(["doctor", "--quick", "--data-dir", data, "--address", "127.0.0.1:0"])).printed).toContain(
      "ok",
    );
  });

  test("[OP-10] reports a damaged database, unsafe keys and folders, a wrong clock, a port in use, and invalid settings", async () => {
    await setUp();
    chmodSync(data, 0o755);
    chmodSync(join(data, "encryption.key"), 0o644);
    const found = await runDoctor("doctor --json", new ManualClock(Date.UTC(2020, 0, 1)));
    expect(found.get("data directory")).toMatchObject({ status: "warn" });
    expect(found.get("encryption key")).toMatchObject({
      status: "wrong",
      detail: expect.stringContaining("chmod 600"),
    });
    expect(found.get("clock")).toMatchObject({ status: "wrong" });
    rmSync(join(data, "encryption.key"));
    expect((await runDoctor()).get("encryption key")?.detail).toContain("missing");
    writeFileSync(join(data, "encryption.key"), "half a key", { mode: 0o600 });
    expect((await runDoctor()).get("encryption key")?.detail).toContain("damaged");
    writeFileSync(join(data, "slipway.db"), "no database at all, whatever its name may be");
    expect((await runDoctor()).get("database")).toMatchObject({ status: "wrong" });
    const occupant = createServer();
    await new Promise<void>((resolve) => occupant.listen(0, "127.0.0.1", resolve));
    const { port } = occupant.address() as { port: number };
    const result = await runVerb(["doctor", "--data-dir", data, "--address", `127.0.0.1:${port}`]);
    expect(result.printed).toMatch(/WRONG +address +127\.0\.0\.1:\d+ is in use by another program/);
    const metricsArgs = [
      "doctor",
      "--address",
      "127.0.0.1:0",
      "--metrics-address",
      `127.0.0.1:${port}`,
      "--data-dir",
      data,
    ];
    expect((await runVerb(metricsArgs)).printed).toMatch(/WRONG +metrics address +127\.0\.0\.1:\d+ is in use/);
    await new Promise((resolve) => occupant.close(resolve));
    const file = join(temp.path, "slipway.yaml");
    const github = "external_auth: [{id: github, type: github, client_id: a, client_secret: b}]\n";
    writeFileSync(file, github, { mode: 0o644 });
    const configArgs = ["doctor", "--data-dir", data, "--address", "127.0.0.1:0", "--config", file];
    expect((await runVerb(configArgs)).printed).toMatch(
      /WARN +settings +all users of this machine can read the secrets in/,
    );
    chmodSync(file, 0o640);
    expect((await runVerb(configArgs)).printed).toMatch(/ok +settings +can be used/);
    for (const argument of ["extra", "--quik"]) expect((await runVerb(["doctor", argument])).code).toBe(2);
    expect((await runVerb(["doctor", "--log-level", "loud"])).printed).toContain("--log-level");
    const exposed = await runVerb([
      "doctor",
      "--data-dir",
      data,
      "--address",
      "0.0.0.0:0",
      "--metrics-address",
      "0.0.0.0:9",
    ]);
    expect(exposed.printed).toContain("metrics are served to other machines");
  });
});

test("[OP-10] `doctor` warns if the system allows fewer connections than max_connections", async () => {
  const line = 'ulimit -Sn 500 && ulimit -Hn 500 && exec "$@" doctor --address 127.0.0.1:0 --data-dir ./none';
  const child = Bun.spawn(["bash", "-c", line, "bash", ...command()], { cwd: temp.path, stdout: "pipe" });
  expect(await child.stdout.text()).toMatch(
    /WARN +open files +the limit of 500 allows 368 connections, but max_connections is 20000/,
  );
});

describe("for shells and systemd", () => {
  test("[OP-11] the systemd unit runs as its own user with few permissions, and contains settings but no secrets", async () => {
    const settings = ["--access-url", "https://x.example.com", "--shutdown-timeout", "20s", "--admin-username", "a-b"];
    const { printed } = await runVerb(
      ["systemd", ...settings, "--admin-email", "a@b.c", "--config", "/etc/slipway/100%.yaml"],
      {
        files: { "/etc/slipway/100%.yaml": "admin_password: correct-horse" },
      },
    );
    expect(printed).toContain('serve "--data-dir=/var/lib/slipway"');
    expect(printed).toContain('"--access-url=https://x.example.com"');
    expect(printed).toContain('"--config=/etc/slipway/100%%.yaml"');
    expect(printed).not.toContain("correct-horse");
    for (const line of [
      "User=slipway",
      "TimeoutStopSec=25",
      "StateDirectory=slipway",
      "ProtectSystem=strict",
      "NoNewPrivileges=yes",
    ]) {
      expect(printed.split("\n")).toContain(line);
    }
    expect((await runVerb(["systemd", "--data-dir", "/srv/x"])).printed).toContain("ReadWritePaths=/srv/x");
    const privilegedSettings = [
      "--address",
      "0.0.0.0:443",
      "--backup-dir",
      "/mnt/50% full",
      "--tls-cert-file",
      "/root/c.pem",
    ];
    const unit = (await runVerb(["systemd", ...privilegedSettings, "--tls-key-file", "/etc/ssl/k.pem"])).printed.split(
      "\n",
    );
    for (const line of [
      'ReadWritePaths="/mnt/50%% full"',
      "CapabilityBoundingSet=CAP_NET_BIND_SERVICE",
      "AmbientCapabilities=CAP_NET_BIND_SERVICE",
      "ProtectHome=no",
    ]) {
      expect(unit).toContain(line);
    }
    expect(printed.split("\n")).toContain("AmbientCapabilities=");
    expect((await runVerb(["systemd", "--data-dir", "./x"])).code).toBe(2);
    expect((await runVerb(["systemd", "--backup-dir", "backups"])).errors).toContain("absolute path");
    expect((await runVerb(["systemd", "--user", "a b"])).code).toBe(2);
    const secretSettings = ["--admin-password", "correct-horse", "--admin-email", "a@b.c", "--admin-username", "a"];
    expect((await runVerb(["systemd", ...secretSettings])).errors).toContain("don't put a secret in a unit");
    const passwordFileSettings = ["--admin-password-file", "/etc/slipway/pw", ...secretSettings.slice(2)];
    const credentials = (await runVerb(["systemd", ...passwordFileSettings])).printed.split("\n");
    for (const line of [
      "LoadCredential=admin_password:/etc/slipway/pw",
      "Environment=SLIPWAY_ADMIN_PASSWORD_FILE=%d/admin_password",
    ]) {
      expect(credentials).toContain(line);
    }
    expect(credentials.find((line) => line.startsWith("ExecStart"))).not.toContain("/etc/slipway/pw");
    expect(printed).toContain("#LoadCredential=admin_password:/etc/slipway/admin-password");
    expect((await runVerb(["systemd", "--admin-password-file=pw", ...secretSettings.slice(2)])).code).toBe(2);
  });
});
