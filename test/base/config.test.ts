// The settings: one table, four sources, and a startup that rejects what it does not understand.
import { describe, expect, test } from "bun:test";
import {
  describeSettings,
  formatExampleFile,
  formatSettingsHelp,
  formatSettingsListing,
} from "#base/config/describe.ts";
import { toFlag } from "#base/config/setting.ts";
import { SERVER_SETTINGS } from "#base/config/settings.ts";
import {
  findContainerAccessProblem,
  formatSettingsMarkdown,
  getAccessUrl,
  getAllowedHosts,
  isUsedOnlyLocally,
  listensOnLoopback,
  listSharedUseSettings,
  loadClientConfig,
  loadConfig,
  loadDaemonConfig,
  loadWorkerConfig,
} from "#base/config.ts";
import { UsageError } from "#base/usage-error.ts";

const load = (argv: string[] = [], env: Record<string, string> = {}, files: Record<string, string> = {}) =>
  loadConfig({ argv, env, readFile: fromFiles(files) });

const fromFiles = (files: Record<string, string>) => (path: string) => {
  const content = files[path];
  if (content === undefined) throw new Error("no such file");
  return content;
};

const getRefusal = (run: () => unknown): string => {
  try {
    run();
  } catch (error) {
    if (error instanceof UsageError) return error.message;
    throw error;
  }
  throw new Error("was not refused");
};

describe("the source of a value", () => {
  const files = { "s.yaml": "log_level: trace\nprovisioner_slots: 7\nallowed_hosts: [one.example, '[::1]']\n" };

  test("[CF-2] a flag overrides the environment, the environment the file, the file the default", () => {
    const env = { SLIPWAY_CONFIG: "s.yaml", SLIPWAY_LOG_LEVEL: "warn" };
    expect(load([], {}).config.log_level.level).toBe("info");
    expect(load([], { SLIPWAY_CONFIG: "s.yaml" }, files).config.log_level.level).toBe("trace");
    expect(load([], env, files).config.log_level.level).toBe("warn");
    const { config, sources } = load(["--log-level", "error", "--data-dir=/srv/x"], env, files);
    expect(config.log_level.level).toBe("error");
    expect(sources.log_level).toEqual({ from: "flag", name: "--log-level" });
    expect(sources.config).toEqual({ from: "env", name: "SLIPWAY_CONFIG" });
    expect(sources.provisioner_slots).toEqual({ from: "file", name: "s.yaml" });
    expect(sources.address).toEqual({ from: "default", name: "default" });
    expect(config.provisioner_slots).toBe(7);
    expect(config.data_dir).toBe("/srv/x");
    expect(config.allowed_hosts).toEqual(["one.example", "[::1]"]);
  });

  test("[CF-2] the last of a repeated flag applies; an empty variable is treated as unset", () => {
    expect(load(["--log-level=warn", "--log-level", "error"]).config.log_level.level).toBe("error");
    expect(load([], { SLIPWAY_LOG_LEVEL: "" }).sources.log_level.from).toBe("default");
  });

  test("[CF-14] the log has a level, and areas may have their own; an unknown area is named", () => {
    const { log_level } = load(["--log-level", "warn,http=debug, db=trace"]).config;
    expect(log_level).toEqual({ level: "warn", areas: { http: "debug", db: "trace" } });
    expect(load(["--log-level", "trace=debug"]).config.log_level.level).toBe("info");
    expect(getRefusal(() => load(["--log-level", "htpp=debug"]))).toContain(
      "there is no area htpp. Did you mean http?",
    );
    for (const level of ["loud", "info,warn", "http=", "=debug", "http=debug=info"])
      getRefusal(() => load(["--log-level", level]));
  });

  test("[CF-2] a switch can be given with or without a value", () => {
    const key = "allow_local_provisioner_off_loopback";
    expect(load([toFlag(key)]).config[key]).toBe(true);
    expect(load([`${toFlag(key)}=false`]).config[key]).toBe(false);
    expect(load([], { SLIPWAY_ALLOW_LOCAL_PROVISIONER_OFF_LOOPBACK: "true" }).config[key]).toBe(true);
  });
});

describe("refused settings", () => {
  test("[CF-3] an unknown flag, variable or file key is refused with its source and a suggestion", () => {
    const files = { "s.yaml": "adress: x:1\nconfig: other.yaml\n" };
    const message = getRefusal(() =>
      load(["--datadir", "x", "--config=s.yaml", "leftover"], { SLIPWAY_LOGLEVEL: "info", OTHER: "1" }, files),
    );
    expect(message).toContain("--datadir (command line): unknown setting. Did you mean --data-dir?");
    expect(message).toContain("leftover (command line): unexpected argument");
    expect(message).toContain("SLIPWAY_LOGLEVEL (environment): unknown setting. Did you mean SLIPWAY_LOG_LEVEL?");
    expect(message).toContain("adress (s.yaml): unknown setting. Did you mean address?");
    expect(message).toContain("config (s.yaml): unknown setting. It can only be a flag or an environment variable.");
    expect(message).not.toContain("OTHER");
  });

  test("[CF-4] a malformed value is refused with its source and the accepted form, even if it is overridden", () => {
    const message = getRefusal(() =>
      load(["--address=7080", "--log-level=info"], { SLIPWAY_LOG_LEVEL: "loud", SLIPWAY_SHUTDOWN_TIMEOUT: "5" }),
    );
    expect(message).toContain("--address (command line): expected host:port");
    expect(message).toContain('got "7080"');
    expect(message).toContain("SLIPWAY_LOG_LEVEL (environment): expected one of trace, debug, info, warn, error");
    expect(message).toContain("SLIPWAY_SHUTDOWN_TIMEOUT (environment): expected a duration such as");
  });

  test("[CF-4] a flag without its value is refused", () => {
    expect(getRefusal(() => load(["--address", "--data-dir", "x"]))).toContain(
      "--address (command line): expected host:port",
    );
    expect(getRefusal(() => load(["--address"]))).toContain("--address (command line): expected host:port");
  });

  test("[CF-4] a file that is missing, not YAML, not a mapping, or has a value of the wrong type is refused", () => {
    expect(getRefusal(() => load(["--config", "gone.yaml"]))).toContain("--config (command line): cannot be read");
    expect(getRefusal(() => load(["--config", "a"], {}, { a: "x: [1" }))).toContain("config (a): not valid YAML");
    expect(getRefusal(() => load(["--config", "a"], {}, { a: "- 1" }))).toContain("expected a YAML mapping");
    expect(getRefusal(() => load(["--config", "a"], {}, { a: "data_dir: {x: 1}" }))).toContain(
      "data_dir (a): expected a path",
    );
    expect(getRefusal(() => load(["--config", "a"], {}, { a: "data_dir:" }))).toContain(
      "data_dir (a): expected a path",
    );
    expect(load(["--config", "a"], {}, { a: "" }).config.data_dir).toBe("./data");
    const twice = "data_dir: a\naddress: localhost:1\ndata_dir : b\n";
    expect(getRefusal(() => load(["--config", "a"], {}, { a: twice }))).toContain(
      "data_dir (a): is set more than once",
    );
  });

  test("[CF-5] the first user needs all three settings, and an error never quotes a secret", () => {
    const message = getRefusal(() =>
      load([], { SLIPWAY_ADMIN_PASSWORD: "hunter2", SLIPWAY_ADMIN_EMAIL: "a@b.example" }),
    );
    expect(message).toContain("SLIPWAY_ADMIN_USERNAME (not given)");
    expect(message).not.toContain("hunter2");
    expect(getRefusal(() => load([], { SLIPWAY_ADMIN_PASSWORD: "hunter2\nx" }))).not.toContain("hunter2");
  });

  // biome-ignore format: a table of cases
  const accepted: [string, string, unknown][] = [
    ["address", "[::1]:0", { host: "::1", port: 0 }],
    ["address", "LOCALHOST:65535", { host: "localhost", port: 65535 }],
    ["access_url", "https://slipway.example", new URL("https://slipway.example")],
    ["allowed_hosts", "A.example, ::1,10.0.0.1", ["a.example", "[::1]", "10.0.0.1"]],
    ["trusted_proxies", "10.0.0.0/8,::1", ["10.0.0.0/8", "::1"]],
    ["shutdown_timeout", "1m30s", 90_000],
    ["shutdown_timeout", "0s", 0],
    ["provisioner_slots", "64", 64],
    ["log_format", "JSON", "json"],
    ["admin_email", "", undefined],
  ];
  test.each(accepted)("[CF-4] %s takes %j", (key, text, value) => {
    const { config } = load([], { [`SLIPWAY_${key.toUpperCase()}`]: text });
    expect(config[key as keyof typeof config]).toEqual(value as never);
  });

  // biome-ignore format: a table of cases
  const refused: [string, string][] = [
    ["address", "::1:7080"], ["address", "127.0.0.256:1"], ["address", "h:65536"], ["address", ":7080"], ["address", "http://h:1"],
    ["access_url", "slipway.example"], ["access_url", "ftp://h"], ["access_url", "https://h/path"], ["access_url", "https://u:p@h"],
    ["allowed_hosts", "a,,b"], ["allowed_hosts", "a:80"], ["allowed_hosts", "[zz]"],
    ["trusted_proxies", "10.0.0.0/33"], ["trusted_proxies", "name"],
    ["provisioner_slots", "0"], ["provisioner_slots", "65"], ["provisioner_slots", "1.5"], ["provisioner_slots", "1e1"],
    ["shutdown_timeout", "5"], ["shutdown_timeout", "5 s"], ["shutdown_timeout", "11m"], ["shutdown_timeout", "-5s"],
    ["admin_username", "-a"], ["admin_username", "a--b"], ["admin_username", "a".repeat(33)], ["admin_email", "ada"],
    ["allow_local_provisioner_off_loopback", "yes"], ["data_dir", " "],
  ];
  test.each(refused)("[CF-4] %s refuses %j", (key, text) => {
    const message = getRefusal(() => load([], { [`SLIPWAY_${key.toUpperCase()}`]: text }));
    expect(message).toContain(`SLIPWAY_${key.toUpperCase()} (environment): expected`);
  });
});

describe("texts generated from the table", () => {
  test("[CF-1] help and example name every setting", () => {
    const help = formatSettingsHelp(SERVER_SETTINGS);
    const example = formatExampleFile(SERVER_SETTINGS);
    for (const key of Object.keys(SERVER_SETTINGS)) {
      expect(help).toContain(toFlag(key));
      expect(help).toContain(`SLIPWAY_${key.toUpperCase()}`);
      if (key !== "config") expect(example).toContain(`\n#${key}:`);
    }
  });

  test("[CF-1] the example file changes nothing, neither as is nor with every default enabled", () => {
    const example = formatExampleFile(SERVER_SETTINGS);
    const plain = load().config;
    expect(load(["--config=e"], {}, { e: example }).config).toEqual({ ...plain, config: "e" });
    const withDefaults = example
      .split("\n")
      .map((line) => (/^#[a-z_]+: (?!"")/.test(line) ? line.slice(1) : line))
      .join("\n");
    const loaded = load(["--config=e"], {}, { e: withDefaults });
    expect(loaded.config).toEqual({ ...plain, config: "e" });
    expect(loaded.sources.address.from).toBe("file");
  });

  test("[CF-5] a listing shows values and sources, and hides secrets", () => {
    const loaded = load([], {
      SLIPWAY_ADMIN_PASSWORD: "hunter2",
      SLIPWAY_ADMIN_EMAIL: "a@b.example",
      SLIPWAY_ADMIN_USERNAME: "admin",
      SLIPWAY_DOCKER_HOST: "https://me:hunter2@docker.example:2376",
    });
    const rows = describeSettings(SERVER_SETTINGS, loaded);
    const listing = formatSettingsListing(rows);
    expect(JSON.stringify(rows) + listing).not.toContain("hunter2");
    expect(listing).toMatch(/admin_password +\(hidden\) +env SLIPWAY_ADMIN_PASSWORD/);
    expect(listing).toContain("https://me:(hidden)@docker.example:2376");
    expect(listing).toMatch(/address +127\.0\.0\.1:7080 +default/);
  });
});

describe("values derived from settings", () => {
  test("[CF-2] another program's variable applies if Slipway's is not set", () => {
    const otherVariables = { DOCKER_HOST: "tcp://docker:2375" };
    expect(load([], otherVariables).config.docker_host).toBe("tcp://docker:2375");
    expect(load([], { ...otherVariables, SLIPWAY_DOCKER_HOST: "unix:///own.sock" }).config.docker_host).toBe(
      "unix:///own.sock",
    );
    expect(load(["--docker-host=unix:///flag.sock"], otherVariables).config.docker_host).toBe("unix:///flag.sock");
    expect(load([], { DOCKER_HOST: "" }).config.docker_host).toBeUndefined();
  });

  test("[CF-2] the settings file overrides another program's variable, even an unusable one", () => {
    const files = { "s.yaml": "docker_host: tcp://file:2375\nterraform_cli_config: /file/tf.rc\n" };
    for (const DOCKER_HOST of ["tcp://ambient:2375", "nonsense"]) {
      const env = { DOCKER_HOST, TF_CLI_CONFIG_FILE: "/ambient/tf.rc", SLIPWAY_CONFIG: "s.yaml" };
      const { config, sources } = load([], env, files);
      expect([config.docker_host, config.terraform_cli_config]).toEqual(["tcp://file:2375", "/file/tf.rc"]);
      expect(sources.docker_host.from).toBe("file");
    }
  });

  test("[CF-18] containers of this machine cannot reach a server on loopback, unless a setting names another address", () => {
    const findAccessProblem = (argv: string[]): string | undefined =>
      findContainerAccessProblem(load(argv).config, "linux");
    expect(findAccessProblem([])).toMatch(
      /listens only on 127\.0\.0\.1:\d+\. Set address to 0\.0\.0\.0:\d+, or docker_access_url/,
    );
    expect(findAccessProblem(["--address", "0.0.0.0:7080"])).toBeUndefined();
    expect(findAccessProblem(["--docker-access-url", "http://172.17.0.1:7080"])).toBeUndefined();
    expect(findAccessProblem(["--access-url", "https://slipway.example.com"])).toBeUndefined();
    // The URL of a proxy on this machine, which containers may be able to reach.
    expect(findAccessProblem(["--access-url", "http://127.0.0.1:8080"])).toBeUndefined();
    expect(findAccessProblem(["--address", "127.0.0.1:8080", "--access-url", "http://localhost:8080"])).toBeDefined();
    expect(findContainerAccessProblem(load([]).config, "darwin")).toBeUndefined();
  });

  test("[CF-7] the default access URL is the address on which the server listens", () => {
    expect(getAccessUrl(load(["--address=127.0.0.1:0"]).config, 4711).href).toBe("http://127.0.0.1:4711/");
    expect(getAccessUrl(load(["--address=0.0.0.0:80"]).config, 80).href).toBe("http://127.0.0.1/");
    expect(getAccessUrl(load(["--address=[::]:81"]).config, 81).href).toBe("http://[::1]:81/");
    expect(getAccessUrl(load(["--access-url=https://s.example"]).config, 1).href).toBe("https://s.example/");
  });

  test("[CF-7] requests may name loopback, the bound address and the access URL's host, or only the hosts in the setting", () => {
    const { config } = load(["--address=[fd00::1]:1", "--access-url=https://S.example:8443"]);
    expect(getAllowedHosts(config)).toEqual(["localhost", "127.0.0.1", "[::1]", "[fd00::1]", "s.example"]);
    expect(getAllowedHosts(load(["--allowed-hosts=only.example"]).config)).toEqual(["only.example"]);
    const plain = ["localhost", "127.0.0.1", "[::1]", "host.docker.internal"];
    expect(getAllowedHosts(load().config)).toEqual(plain);
    expect(getAllowedHosts(load(["--docker-access-url=http://172.17.0.1:7080"]).config)).toContain("172.17.0.1");
    expect(listensOnLoopback(config)).toBe(false);
    for (const host of ["localhost", "127.0.0.1", "[::1]"]) {
      expect(listensOnLoopback(load([`--address=${host}:1`]).config)).toBe(true);
    }
    expect(listensOnLoopback(load(["--address=127.example.com:1"]).config)).toBe(false);
    expect(listensOnLoopback(load().config)).toBe(true);
  });
});

describe("secrets from files", () => {
  const files = fromFiles({ "/run/pw": "correct-horse\n", "/s.yaml": "admin_password_file: /run/pw\n" });
  const otherFlags = ["--admin-email=a@b.c", "--admin-username=a"];
  const loadWithSecret = (argv: string[], env: Record<string, string> = {}) =>
    loadConfig({ argv: [...otherFlags, ...argv], env, readFile: files });

  test("[CF-16] variable, flag and key of the settings file name the file, with their usual order", () => {
    for (const loaded of [
      loadWithSecret([], { SLIPWAY_ADMIN_PASSWORD_FILE: "/run/pw" }),
      loadWithSecret(["--admin-password-file=/run/pw"], { SLIPWAY_ADMIN_PASSWORD: "weaker" }),
      loadWithSecret(["--config=/s.yaml"]),
    ]) {
      expect(loaded.config.admin_password).toBe("correct-horse");
    }
    expect(loadWithSecret(["--config=/s.yaml"], { SLIPWAY_ADMIN_PASSWORD: "stronger" }).config.admin_password).toBe(
      "stronger",
    );
    expect(loadWithSecret([], { SLIPWAY_ADMIN_PASSWORD_FILE: "/run/pw" }).sources.admin_password).toEqual({
      from: "env",
      name: "SLIPWAY_ADMIN_PASSWORD_FILE",
    });
    const client = { SLIPWAY_TOKEN_FILE: "/run/pw" };
    expect(loadClientConfig({ env: client, readFile: files }, {}).token).toBe("correct-horse");
    expect(formatSettingsMarkdown()).toContain("`SLIPWAY_ADMIN_PASSWORD_FILE`");
  });

  test("[CF-16] refuses a secret that is set twice, a missing file, and a file for a setting that is not secret", () => {
    const bothVariables = { SLIPWAY_ADMIN_PASSWORD_FILE: "/run/pw", SLIPWAY_ADMIN_PASSWORD: "x-secret-x" };
    expect(getRefusal(() => loadWithSecret([], bothVariables))).toContain("SLIPWAY_ADMIN_PASSWORD is also set");
    expect(getRefusal(() => loadWithSecret([], bothVariables))).not.toContain("x-secret-x");
    expect(getRefusal(() => loadWithSecret(["--admin-password-file=/nowhere"]))).toContain("cannot be read");
    expect(getRefusal(() => loadWithSecret(["--admin-email-file=/run/pw"]))).toContain("unknown setting");
  });
});

describe("whether only this machine uses the server", () => {
  const isOnlyUsedLocally = (...argv: string[]): boolean => isUsedOnlyLocally(load(argv).config);

  test("[CF-15] applies while every address is a loopback address and no proxy is trusted", () => {
    expect(isOnlyUsedLocally()).toBe(true);
    expect(isOnlyUsedLocally("--access-url=http://localhost:7080", "--wildcard-access-url=*.apps.localhost:7080")).toBe(
      true,
    );
    expect(isOnlyUsedLocally("--access-url=http://[::1]:7080", "--allowed-hosts=localhost,host.docker.internal")).toBe(
      true,
    );
  });

  test("[CF-15] does not apply once one setting suggests other users, and the message names the setting", () => {
    const sharedUseSettings: [string, string][] = [
      ["--address=0.0.0.0:7080", "address is 0.0.0.0:7080"],
      ["--address=127.example.com:7080", "address is 127.example.com:7080"],
      ["--access-url=https://slipway.example.com", "access_url is https://slipway.example.com"],
      ["--access-url=http://127.example.com", "access_url is http://127.example.com"],
      ["--wildcard-access-url=*.apps.example.com", "wildcard_access_url is *.apps.example.com"],
      ["--trusted-proxies=127.0.0.1", "trusted_proxies names a proxy"],
      ["--allowed-hosts=localhost,slipway.lan", "allowed_hosts names slipway.lan"],
    ];
    for (const [flag, sign] of sharedUseSettings) {
      expect([flag, isOnlyUsedLocally(flag)]).toEqual([flag, false]);
      expect(listSharedUseSettings(load([flag]).config)).toEqual([sign]);
    }
    expect(listSharedUseSettings(load(sharedUseSettings.slice(3, 6).map(([flag]) => flag)).config)).toHaveLength(3);
  });
});

describe("the daemon's settings", () => {
  const loadDaemon = (argv: string[], env: Record<string, string>, files: Record<string, string> = {}) =>
    loadDaemonConfig({ argv, env, readFile: fromFiles(files) });
  const url = { SLIPWAY_AGENT_URL: "http://127.0.0.1:7080" };

  test("[CF-2] come from flags and SLIPWAY_AGENT_ variables, the token also from a file", () => {
    expect(loadDaemon([], { ...url, SLIPWAY_AGENT_TOKEN: "t1" })).toMatchObject({
      url: new URL("http://127.0.0.1:7080"),
      token: "t1",
    });
    expect(loadDaemon(["--token-file=f"], url, { f: "t2\n" }).token).toBe("t2");
    expect(loadDaemon(["--token=t3", "--token-file=f"], url, { f: "t2\n" }).token).toBe("t3");
  });

  test("[CF-3] must be complete and known", () => {
    expect(getRefusal(() => loadDaemon([], url))).toContain("--token or SLIPWAY_AGENT_TOKEN (not given)");
    expect(getRefusal(() => loadDaemon(["--token=t"], {}))).toContain("--url or SLIPWAY_AGENT_URL (not given)");
    expect(getRefusal(() => loadDaemon(["--token-file=f"], url))).toContain("cannot be read");
    expect(getRefusal(() => loadDaemon([], { ...url, SLIPWAY_AGENT_TOKN: "t" }))).toContain(
      "Did you mean SLIPWAY_AGENT_TOKEN?",
    );
    expect(load([], { ...url, SLIPWAY_AGENT_TOKEN: "t" }).config.data_dir).toBe("./data");
  });
});

describe("the settings of an external worker", () => {
  const loadWorker = (argv: string[], env: Record<string, string> = {}, files: Record<string, string> = {}) =>
    loadWorkerConfig({ argv, env, readFile: fromFiles(files) });
  const url = "--url=http://127.0.0.1:7080";

  test("[CF-2] come from flags and SLIPWAY_WORKER_ variables, the key also from a file", () => {
    expect(loadWorker([url, "--key-file=f"], {}, { f: "k1\n" }).key).toBe("k1");
    const env = {
      SLIPWAY_WORKER_KEY: "k2",
      SLIPWAY_WORKER_TAGS: "a=1,b=2",
      SLIPWAY_WORKER_PROVISIONERS: "docker,echo",
    };
    expect(loadWorker([url, "--slots=4"], env)).toMatchObject({
      key: "k2",
      slots: 4,
      tags: ["a=1", "b=2"],
      provisioners: ["docker", "echo"],
      organization: "default",
    });
    // A server may be started next to a worker.
    expect(load([], { SLIPWAY_WORKER_KEY: "k" }).config.data_dir).toBe("./data");
  });

  test("[CF-4] must be complete and well-formed", () => {
    expect(getRefusal(() => loadWorker([url]))).toContain("--key or SLIPWAY_WORKER_KEY (not given)");
    expect(getRefusal(() => loadWorker(["--key=k"]))).toContain("--url or SLIPWAY_WORKER_URL (not given)");
    expect(getRefusal(() => loadWorker([url, "--key=k", "--tags=a"]))).toContain("name=value pairs");
    expect(getRefusal(() => loadWorker([url, "--key=k", "--provisioners=external"]))).toContain(
      "local, docker, terraform and echo",
    );
    expect(getRefusal(() => loadWorker([url, "--key-file=gone"]))).toContain("--key-file (gone): cannot be read");
  });

  test("[TF-23] a Terraform worker refuses plain http to another machine unless a setting allows it", () => {
    const remoteUrl = ["--url=http://slipway.example.com", "--key=k"];
    expect(getRefusal(() => loadWorker([...remoteUrl, "--provisioners=local,terraform"]))).toContain(
      "would be sent unencrypted",
    );
    expect(loadWorker([...remoteUrl, "--provisioners=terraform", "--insecure"]).insecure).toBe(true);
    expect(loadWorker([...remoteUrl, "--provisioners=local"]).insecure).toBe(false);
    for (const urlFlag of ["--url=https://slipway.example.com", "--url=http://localhost:7080", url])
      expect(loadWorker([urlFlag, "--key=k", "--provisioners=terraform"]).provisioners).toEqual(["terraform"]);
  });
});
