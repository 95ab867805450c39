// The server's own provisioners, created from its settings. Tests pass others.
import { join } from "node:path";
import type { Provisioners } from "#actors/workspace/build-runner.ts";
import type { Clock } from "#base/clock.ts";
import { toImageRegistry } from "#base/config/docker-settings.ts";
import { type Config, findContainerAccessProblem, getContainerAccessUrl } from "#base/config.ts";
import { DockerProvisioner } from "#src/provisioners/docker/docker.ts";
import { EchoProvisioner } from "#src/provisioners/echo/echo.ts";
import { ExternalProvisioner } from "#src/provisioners/external/external.ts";
import type { Workers } from "#src/provisioners/external/workers.ts";
import { LocalProvisioner } from "#src/provisioners/local/local.ts";
import type { Provisioner } from "#src/provisioners/provisioner.ts";
import type { RepositorySources } from "#src/provisioners/repository/sources.ts";
import { TerraformProvisioner } from "#src/provisioners/terraform/terraform.ts";
import { explainNoLocal } from "./local-rule.ts";

type ProvisionerOptions = {
  readonly config: Config;
  readonly provisioners?: Provisioners | undefined;
  readonly environment?: Readonly<Record<string, string | undefined>> | undefined;
  /** Build files of repository images. */
  readonly repositories?: RepositorySources | undefined;
  readonly daemon?: readonly string[] | undefined;
};

/** Returns why this server's settings let no workspace of this provisioner start; empty if they do, or if workers run it. */
export const explainUnavailable = (config: Config, provisioner: string): string => {
  if (provisioner === "docker") return findContainerAccessProblem(config) ?? "";
  return provisioner === "local" ? (explainNoLocal(config) ?? "") : "";
};

/** Returns the available provisioners. `local` can always stop and delete workspaces; it starts them only where that is allowed. */
export const makeProvisioners = (
  { config, provisioners, environment, daemon, repositories }: ProvisionerOptions,
  clock: Clock,
  accessUrl: () => URL,
  workers: Workers,
): Provisioners => {
  if (provisioners) return provisioners;
  const docker = new DockerProvisioner({
    host: config.docker_host,
    clock,
    accessUrl: () => getContainerAccessUrl(config.docker_access_url, accessUrl()),
    program: config.agent_binary,
    unreachableReason: findContainerAccessProblem(config),
    repositories,
    repositoryImages: config.repository_images_mb * 1024 * 1024,
    registry: toImageRegistry(config),
  });
  const root = join(config.data_dir, "workspaces");
  const local = new LocalProvisioner({
    root,
    clock,
    accessUrl,
    environment,
    command: daemon,
    orphanTimeoutMs: config.local_daemon_orphan_timeout,
    user: config.local_workspace_user,
    refusal: explainNoLocal(config),
  });
  const terraform = new TerraformProvisioner({
    root: join(config.data_dir, "terraform"),
    clock,
    env: environment ?? {},
    binary: config.terraform_binary,
    cliConfig: config.terraform_cli_config,
    pass: config.terraform_environment,
    applyLimit: config.terraform_apply_limit,
    formLimit: config.terraform_form_limit,
  });
  const external = new ExternalProvisioner(workers, clock);
  const created: Provisioner[] = [new EchoProvisioner(), docker, external, local, terraform];
  return new Map(created.map((one) => [one.name as string, one]));
};
