// Checks the keys of a manifest that belong to one provisioner, and the requirements of each provisioner (rules PV-1, PV-9, TP-12).
import type { Manifest, ManifestContainer } from "#schema/templates/manifest.ts";
import { findNetworkProblem } from "./docker/network-name.ts";
import { resolveProvisioner } from "./effective.ts";
import type { Finding } from "./finding.ts";

/** Tags that the server sets (see external/tags.ts). */
const RESERVED_TAGS: readonly string[] = ["provisioner", "organization", "place"];

export const checkProvisioner = (manifest: Manifest): Finding[] => [
  ...checkExternal(manifest),
  ...checkTags(manifest),
  ...(manifest.echo && resolveProvisioner(manifest) !== "echo"
    ? [{ pointer: "/echo", reason: "is only for the provisioner echo" }]
    : []),
  ...(resolveProvisioner(manifest) === "local" ? checkOneAgent(manifest) : []),
  ...(resolveProvisioner(manifest) === "docker" ? checkContainers(manifest) : checkNoContainers(manifest)),
];

const checkExternal = ({ provisioner, external }: Manifest): Finding[] => {
  if (provisioner !== "external") {
    return external ? [{ pointer: "/external", reason: "is only for the provisioner external" }] : [];
  }
  return external ? [] : [{ pointer: "/external", reason: "is missing: it names the provisioner that a worker uses" }];
};

const checkTags = ({ tags = {} }: Manifest): Finding[] =>
  Object.keys(tags)
    .filter((tag) => RESERVED_TAGS.includes(tag))
    .map((tag) => ({ pointer: `/tags/${tag}`, reason: "is set by the server" }));

/** A local workspace is one process, so it has one agent. */
const checkOneAgent = ({ resources }: Manifest): Finding[] => {
  const pointers = resources.flatMap(({ agents = [] }, i) => agents.map((_, j) => `/resources/${i}/agents/${j}`));
  if (pointers.length === 1) return [];
  const [, secondPointer = "/resources"] = pointers;
  const reason = `a local workspace has exactly one agent, this template has ${pointers.length || "none"}`;
  return [{ pointer: secondPointer, reason }];
};

const checkNoContainers = ({ resources }: Manifest): Finding[] =>
  resources.flatMap(({ docker }, i) =>
    docker ? [{ pointer: `/resources/${i}/docker`, reason: "is only for the provisioner docker" }] : [],
  );

const checkContainers = ({ resources }: Manifest): Finding[] => [
  ...(resources.some(({ docker }) => docker) ? [] : [{ pointer: "/resources", reason: "none has the key docker" }]),
  ...resources.flatMap(({ docker, agents = [] }, i) => {
    const at = `/resources/${i}`;
    if (!docker)
      return agents.length > 0 ? [{ pointer: `${at}/agents`, reason: "needs a container: the key docker" }] : [];
    return [
      ...(agents.length > 1 ? [{ pointer: `${at}/agents`, reason: "a container has at most one agent" }] : []),
      ...checkContainer(docker, `${at}/docker`),
    ];
  }),
];

const checkContainer = (
  { env = {}, labels = {}, volumes = [], memory, cpus, network = "" }: ManifestContainer,
  at: string,
): Finding[] => {
  const findings: Finding[] = [];
  const addFinding = (key: string, reason: string): void => void findings.push({ pointer: `${at}/${key}`, reason });
  for (const name of Object.keys(env)) {
    if (!/^[A-Za-z_][A-Za-z0-9_]*$/.test(name)) addFinding(`env/${name}`, "is not a name of an environment variable");
    else if (name.startsWith("SLIPWAY_AGENT_")) addFinding(`env/${name}`, "is set by the server");
  }
  for (const name of Object.keys(labels)) {
    if (name.startsWith("slipway.")) addFinding(`labels/${name.replaceAll("/", "~1")}`, "is set by the server");
  }
  const paths = volumes.map(({ path }) => path);
  paths.forEach((path, i) => {
    if (paths.indexOf(path) < i) addFinding(`volumes/${i}/path`, "another volume is mounted there");
  });
  // If the name contains a placeholder, the build checks the final value.
  const problem = network === "" || network.includes("{{") ? undefined : findNetworkProblem(network);
  if (problem !== undefined) addFinding("network", problem);
  if (memory !== undefined && !memory.includes("{{") && !/^\d+(\.\d+)?\s*[kmgt]?i?b?$/i.test(memory)) {
    addFinding("memory", "must be an amount such as 512m or 4g");
  }
  const cpuCount = typeof cpus === "string" && cpus.includes("{{") ? 1 : Number(cpus ?? 1);
  if (!(cpuCount > 0)) addFinding("cpus", "must be a number above 0, such as 0.5");
  return findings;
};
