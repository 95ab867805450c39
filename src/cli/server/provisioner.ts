// `slipway provisioner`: an external worker. Takes builds from a server and runs them here until stopped.
import { rmSync } from "node:fs";
import { hostname } from "node:os";
import { join, resolve } from "node:path";
import { toImageRegistry } from "#base/config/docker-settings.ts";
import { getContainerAccessUrl, loadWorkerConfig, SECRET_VARIABLES, type WorkerSettings } from "#base/config.ts";
import { armFailpoint } from "#base/failpoint.ts";
import { sha256 } from "#base/ids.ts";
import { log } from "#base/log.ts";
import { systemRandom } from "#base/random.ts";
import { VERSION } from "#base/version.ts";
import { DockerProvisioner } from "#src/provisioners/docker/docker.ts";
import { EchoProvisioner } from "#src/provisioners/echo/echo.ts";
import { printTags } from "#src/provisioners/external/tags.ts";
import { runWorker } from "#src/provisioners/external/worker.ts";
import { LocalProvisioner } from "#src/provisioners/local/local.ts";
import type { Provisioner } from "#src/provisioners/provisioner.ts";
import { TerraformProvisioner } from "#src/provisioners/terraform/terraform.ts";
import { startLogging } from "../logging.ts";
import { EXIT, type RunVerb, type VerbInput } from "../verb.ts";

export const run: RunVerb = async (input) => {
  const settings = loadWorkerConfig(input);
  input.forgetVariables?.(SECRET_VARIABLES);
  startLogging(settings, input);
  if (input.env.SLIPWAY_FAILPOINT) armFailpoint(input.env.SLIPWAY_FAILPOINT);
  const name = settings.name ?? getMachineName();
  const provisioners = makeProvisioners(settings, input);
  for (const one of provisioners.values()) await one.prepare?.();
  const files = join(resolve(settings.data_dir), "files");
  // Removes leftover files of an earlier worker.
  rmSync(files, { recursive: true, force: true });
  await runWorker({
    endpoint: toEndpoint(settings, name),
    key: settings.key,
    provisioners,
    files,
    clock: input.clock,
    random: systemRandom,
    signal: input.signal,
    connected: (registeredName) => {
      log("worker").info("connected as {name}", { name: registeredName });
      input.print(`Worker ${registeredName} is connected to ${settings.url.origin}`);
    },
  });
  for (const one of provisioners.values()) one.stop?.();
  return EXIT.ok;
};

const getMachineName = (): string =>
  hostname()
    .replace(/[^a-zA-Z0-9]+/g, "-")
    .replace(/^-|-$/g, "")
    .slice(0, 64) || "worker";

const toEndpoint = (settings: WorkerSettings, name: string): URL => {
  const { url, organization, provisioners, tags, slots } = settings;
  const endpoint = new URL(`/api/v2/organizations/${encodeURIComponent(organization)}/provisionerdaemons/serve`, url);
  endpoint.protocol = url.protocol === "https:" ? "wss:" : "ws:";
  endpoint.search = new URLSearchParams({
    name,
    tags: tags.join(","),
    provisioners: provisioners.join(","),
    places: printTags(toPlaces(settings)),
    version: VERSION,
    slots: String(slots),
  }).toString();
  return endpoint;
};

/** Identifies where the worker creates resources. A digest is enough, because the server only compares it. */
const toPlaces = ({ data_dir, docker_host = "" }: WorkerSettings): Record<string, string> => {
  const hashParts = (...parts: string[]): string => sha256(parts.join("\0")).slice(0, 32);
  const engine =
    docker_host.startsWith("tcp:") || docker_host.startsWith("http") ? docker_host : `${hostname()} ${docker_host}`;
  const toFolderName = (kind: string): string => hashParts(kind, hostname(), resolve(data_dir));
  return { local: toFolderName("local"), docker: hashParts("docker", engine), terraform: toFolderName("terraform") };
};

const makeProvisioners = (settings: WorkerSettings, { clock, env }: VerbInput): Map<string, Provisioner> => {
  const { url, data_dir, docker_host, docker_access_url, agent_binary } = settings;
  const factories: Record<string, () => Provisioner> = {
    echo: () => new EchoProvisioner(),
    local: () =>
      new LocalProvisioner({
        root: join(resolve(data_dir), "workspaces"),
        clock,
        accessUrl: () => url,
        environment: env,
      }),
    docker: () =>
      new DockerProvisioner({
        host: docker_host,
        clock,
        accessUrl: () => getContainerAccessUrl(docker_access_url, url),
        program: agent_binary,
        // Images are not pruned here: the server does so if it shares the engine.
        repositoryImages: Number.POSITIVE_INFINITY,
        registry: toImageRegistry(settings),
      }),
    terraform: () =>
      new TerraformProvisioner({
        root: join(resolve(data_dir), "terraform"),
        clock,
        env,
        binary: settings.terraform_binary,
        cliConfig: settings.terraform_cli_config,
        pass: settings.terraform_environment,
        applyLimit: settings.terraform_apply_limit,
        formLimit: settings.terraform_form_limit,
      }),
  };
  return new Map(
    settings.provisioners.flatMap((kind) => (factories[kind] ? [[kind, factories[kind]()] as const] : [])),
  );
};
