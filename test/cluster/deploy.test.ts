// The cluster deployment in deploy/: the chart is rendered and its objects are validated member by member, the compose file and the unit
// are checked by their real programs if installed, and every setting named there and in the manual exists.
import { describe, expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { listVariables } from "#base/config/secret-files.ts";
import { toVariableName } from "#base/config/setting.ts";
import { SERVER_SETTINGS } from "#base/config/settings.ts";
import { loadConfig } from "#base/config.ts";
import { runVerb } from "#test/cli/run-verb.ts";
import { ROOT, readPage } from "#test/support/documents.ts";
import { needs, testNeeding } from "#test/support/needs.ts";
import { tempDirectory } from "#test/support/server.ts";
import { version } from "../../package.json";
import { findComposeProblems } from "./compose-schema.ts";
import { findObjectProblems } from "./kubernetes-schema.ts";

const CHART = "deploy/helm/slipway";
const COMPOSE = "deploy/compose/cluster.yaml";
const BALANCER = "deploy/compose/haproxy.cfg";
const UNIT = "deploy/systemd/slipway.service";

type Tree = { readonly [name: string]: unknown };
type KubernetesObject = { kind: string; metadata: { name: string }; spec: Tree };
type Variables = Record<string, string>;

const parseYaml = <T>(text: string): T => Bun.YAML.parse(text) as T;

const runProgram = (argv: readonly string[], input = "") => {
  const { exitCode, stdout, stderr } = Bun.spawnSync([...argv], { cwd: ROOT, stdin: Buffer.from(input) });
  return { exitCode, output: stdout.toString(), errors: stderr.toString() };
};

/** `values`: an operator's values, merged over the chart's. Throws the renderer's error. */
const render = (values: Tree): KubernetesObject[] => {
  const folder = join(ROOT, CHART, "templates");
  const templates = Object.fromEntries(
    readdirSync(folder).map((name) => [name, readFileSync(join(folder, name), "utf8")]),
  );
  const { version: Version, appVersion: AppVersion } = parseYaml<Variables>(readPage(`${CHART}/Chart.yaml`));
  const data = {
    Values: mergeTrees(parseYaml<Tree>(readPage(`${CHART}/values.yaml`)), values),
    Release: { Name: "slipway", Namespace: "default" },
    Chart: { Name: "slipway", Version, AppVersion },
  };
  const { exitCode, output, errors } = runProgram(
    [needs.go.file, "run", join(import.meta.dir, "render.go")],
    JSON.stringify({ templates, data }),
  );
  if (exitCode !== 0) throw new Error(errors);
  const texts = Object.values(JSON.parse(output) as Variables);
  return texts
    .flatMap((text) => text.split(/^---$/m))
    .flatMap((text) => parseYaml<KubernetesObject | null>(text) ?? []);
};

const mergeTrees = (base: Tree, overrides: Tree): Tree =>
  Object.fromEntries(
    Object.entries({ ...base, ...overrides }).map(([name, value]) => {
      const baseValue = base[name];
      return isTree(value) && isTree(baseValue) ? [name, mergeTrees(baseValue, value)] : [name, value];
    }),
  );

const isTree = (value: unknown): value is Tree => typeof value === "object" && value !== null && !Array.isArray(value);

type Container = { env: { name: string; value?: string }[] } & Record<string, { httpGet: Tree }>;
const findContainer = (objects: readonly KubernetesObject[]): Container => {
  const nodes = objects.find(({ kind }) => kind === "StatefulSet") as KubernetesObject;
  const { template } = nodes.spec as { template: { spec: { containers: Container[] } } };
  return template.spec.containers[0] as Container;
};

/** Parses these settings as a node would, with files for secrets regardless of their paths. Throws UsageError. */
const loadNodeConfig = (variables: Variables) =>
  loadConfig({
    argv: [],
    env: variables,
    readFile: (path) =>
      path.endsWith("encryption_key") ? "5".repeat(64) : "postgres://slipway:secret@database/slipway",
  }).config;

const ALL_VALUES: Tree = {
  accessUrl: "https://slipway.example.com",
  image: { repository: "registry.example.com:5000/slipway", tag: "v1" },
  imagePullSecrets: ["registry"],
  settings: { trusted_proxies: "10.0.0.0/8", provisioner_slots: 8, chat_titles: false, api_rate_limit: 1_000_000 },
  extraEnv: [{ name: "SLIPWAY_HOOK_SECRET", valueFrom: { secretKeyRef: { name: "hooks", key: "secret" } } }],
  service: { type: "LoadBalancer", port: 443, annotations: { "example.com/a": "b" } },
  ingress: {
    enabled: true,
    className: "nginx",
    host: "slipway.example.com",
    annotations: { "nginx.ingress.kubernetes.io/proxy-body-size": "0" },
    tlsSecret: "certificate",
  },
  metrics: { enabled: true, port: 9999 },
  nodeSelector: { disk: "fast" },
  tolerations: [{ key: "only", operator: "Exists", effect: "NoSchedule" }],
};

describe("the chart", () => {
  testNeeding(
    [needs.go],
    "[CL-18] renders valid Kubernetes objects, with every value and with the required ones only",
    async () => {
      const minimal = render({ accessUrl: "https://slipway.example.com" });
      const complete = render(ALL_VALUES);
      expect([minimal, complete].flatMap((objects) => objects.flatMap(findObjectProblems))).toEqual([]);
      expect(minimal.map(({ kind, metadata }) => `${kind} ${metadata.name}`).sort()).toEqual([
        "PodDisruptionBudget slipway",
        "Service slipway",
        "Service slipway-nodes",
        "StatefulSet slipway",
      ]);
      expect(complete.map(({ kind }) => kind)).toContain("Ingress");
      // The schema detects a misspelled member.
      const misspelled = structuredClone(minimal);
      Object.assign(findContainer(misspelled).readinessProbe ?? {}, { periodSecond: 1 });
      expect(misspelled.flatMap(findObjectProblems)).toEqual([
        "StatefulSet/spec/template/spec/containers/0/readinessProbe/periodSecond: Unexpected property",
      ]);
      expect(() => render({})).toThrow("accessUrl is needed");
      expect(() =>
        render({ accessUrl: "https://x", image: { repository: "a", tagg: "b" }, ingress: { enabled: true } }),
      ).toThrow("ingress.host is needed");
    },
  );

  testNeeding(
    [needs.go],
    "[CL-18] runs nodes with valid settings, and probes them under a hostname that they accept",
    async () => {
      for (const values of [{ accessUrl: "https://slipway.example.com" }, ALL_VALUES]) {
        const { env, ...container } = findContainer(render(values));
        const variables = Object.fromEntries(
          env.filter(({ name }) => name.startsWith("SLIPWAY_")).map(({ name, value = "x" }) => [name, value]),
        );
        variables.SLIPWAY_NODE_ADDRESS = (variables.SLIPWAY_NODE_ADDRESS ?? "").replace("$(POD_NAME)", "slipway-0");
        delete variables.SLIPWAY_HOOK_SECRET;
        const { database_url, encryption_key, node_address, access_url, ...otherSettings } = loadNodeConfig(variables);
        if (values === ALL_VALUES)
          expect(otherSettings).toMatchObject({ provisioner_slots: 8, api_rate_limit: 1_000_000 });
        expect([database_url, encryption_key?.length, node_address, access_url?.href]).toEqual([
          "postgres://slipway:secret@database/slipway",
          64,
          { host: "slipway-0.slipway-nodes", port: 7080 },
          "https://slipway.example.com/",
        ]);
        for (const probe of ["startupProbe", "livenessProbe", "readinessProbe"]) {
          expect(container[probe]?.httpGet.httpHeaders).toEqual([{ name: "Host", value: "localhost" }]);
        }
      }
    },
  );

  test("[CL-18] has this version", () => {
    const { appVersion, version: chartVersion } = parseYaml<Variables>(readPage(`${CHART}/Chart.yaml`));
    expect([appVersion, chartVersion]).toEqual([version, version]);
  });
});

type Service = { environment?: Variables; secrets?: string[]; image: string; hostname?: string };

describe("the compose file", () => {
  const parseServices = (): Record<string, Service> =>
    parseYaml<{ services: Record<string, Service> }>(readPage(COMPOSE)).services;

  test("[CL-18] runs three nodes with valid settings, each with its own name", () => {
    const nodes = Object.entries(parseServices()).filter(([name]) => name.startsWith("node-"));
    const addresses = nodes.map(([name, { environment = {}, secrets = [], hostname }]) => {
      const settings = { ...environment, SLIPWAY_ACCESS_URL: "http://localhost:7080" };
      const { node_address, database_url, encryption_key } = loadNodeConfig(settings);
      expect([node_address?.host, hostname, database_url !== undefined, encryption_key?.length]).toEqual([
        name,
        name,
        true,
        64,
      ]);
      const files = Object.entries(settings).flatMap(([key, value]) => (key.endsWith("_FILE") ? [value] : []));
      expect(files.map((path) => path.replace("/run/secrets/", "")).sort()).toEqual([...secrets].sort());
      return `${node_address?.host}:${node_address?.port}`;
    });
    expect(addresses).toEqual(["node-a:7080", "node-b:7080", "node-c:7080"]);
    const balancerAddresses = [...readPage(BALANCER).matchAll(/^ {4}server \S+ (\S+)/gm)].map(
      ([, address]) => address ?? "",
    );
    expect(balancerAddresses).toEqual(addresses);
  });

  test("[CL-18] has only members that Compose knows, and no dangling reference", () => {
    const parseFile = () => parseYaml<{ services: Record<string, Tree> }>(readPage(COMPOSE));
    expect(findComposeProblems(parseFile())).toEqual([]);
    const problems = parseFile();
    Object.assign(problems.services.database ?? {}, { enviroment: {} });
    expect(findComposeProblems(problems)).toEqual(["/services/database/enviroment: Unexpected property"]);
    const withMissingSecret = parseFile();
    Object.assign(withMissingSecret.services["node-a"] ?? {}, { secrets: ["database_uri"] });
    expect(findComposeProblems(withMissingSecret)).toEqual(["secret database_uri does not exist"]);
  });

  testNeeding([needs.compose], "[CL-18] is accepted by Docker Compose", async () => {
    const plugIn = needs.compose.file.endsWith("docker") ? ["compose"] : [];
    const { exitCode, errors } = runProgram([needs.compose.file, ...plugIn, "--file", COMPOSE, "config", "--quiet"]);
    expect([exitCode, errors]).toEqual([0, ""]);
  });

  testNeeding([needs.haproxy], "[CL-18] has a load balancer with a valid configuration", async () => {
    const { exitCode, errors } = runProgram([needs.haproxy.file, "-c", "-f", BALANCER]);
    // The nodes do not exist.
    const misspelled = errors
      .split("\n")
      .filter((line) => /ALERT|WARNING/.test(line) && !line.includes("could not resolve"));
    expect([exitCode, misspelled]).toEqual([0, []]);
  });
});

describe("the unit", () => {
  const settings = [
    ...["--address", "0.0.0.0:7080", "--access-url", "https://slipway.example.com"],
    ...["--database-url-file", "/etc/slipway/database-url", "--encryption-key-file", "/etc/slipway/encryption-key"],
  ];

  test("[CL-18] equals the output of `slipway systemd` for a node, and its example variables are settings", async () => {
    const { code, printed } = await runVerb(["systemd", ...settings]);
    expect([code, printed]).toEqual([0, readPage(UNIT)]);
    const variables = Object.fromEntries(
      [...readPage("deploy/systemd/env.example").matchAll(/^([A-Z_]+)=(.*)$/gm)].map(([, name = "", value]) => [
        name,
        value,
      ]),
    ) as Variables;
    expect(loadNodeConfig(variables).node_address).toEqual({ host: "node-a.internal", port: 7080 });
  });

  testNeeding([needs.systemdAnalyze], "[CL-18] is accepted by systemd", async () => {
    using temp = tempDirectory();
    const file = join(temp.path, "slipway.service");
    // Replaces the installed program with one that exists.
    await Bun.write(file, readPage(UNIT).replace("/usr/local/bin/slipway", "/bin/true"));
    const { exitCode, errors } = runProgram([needs.systemdAnalyze.file, "verify", "--man=no", file]);
    expect([exitCode, errors.split("\n").filter((line) => line.includes("slipway.service"))]).toEqual([0, []]);
  });
});

test("[CL-18] every setting in the manual and in deploy/ exists", () => {
  const known = new Set(listVariables(SERVER_SETTINGS));
  const texts = [
    readPage("docs/cluster.md"),
    ...[...new Bun.Glob("deploy/**").scanSync({ cwd: ROOT })].map(readPage),
    // As in the chart's values.
    ...Object.keys(ALL_VALUES.settings as Tree).map((name) => toVariableName(name)),
  ];
  const named = texts.flatMap((text) => [...text.matchAll(/\bSLIPWAY_[A-Z0-9_]*[A-Z]/g)].map(([name]) => name));
  expect(named.length).toBeGreaterThan(20);
  // Variables that Kubernetes would set in the pods of a service, which must not reach the program; and variables of install.sh, of agents'
  // install scripts, and of clients' examples.
  const otherVariables = new Set(["SLIPWAY_PORT", "SLIPWAY_INSTALL_DIR", "SLIPWAY_URL", "SLIPWAY_TOKEN"]);
  expect([...new Set(named)].filter((name) => !known.has(name) && !otherVariables.has(name))).toEqual([]);
  expect(known.has("SLIPWAY_DATABASE_URI_FILE")).toBe(false);
});
