// The provisioners of the server itself, made from its settings; context.ts puts them in. Tests pass others.
import { join } from "node:path";
import type { Provisioners } from "#actors/workspace/build-runner.ts";
import type { Clock } from "#base/clock.ts";
import { imageRegistry } from "#base/config/docker-settings.ts";
import { type Config, containerAccessUrl, containersCutOff } from "#base/config.ts";
import { whyNoLocal } from "#domain/builds/local-rule.ts";
import { DockerProvisioner } from "#src/provisioners/docker/docker.ts";
import { EchoProvisioner } from "#src/provisioners/echo/echo.ts";
import { ExternalProvisioner } from "#src/provisioners/external/external.ts";
import type { Workers } from "#src/provisioners/external/workers.ts";
import { LocalProvisioner } from "#src/provisioners/local/local.ts";
import type { Provisioner } from "#src/provisioners/provisioner.ts";
import type { RepositorySources } from "#src/provisioners/repository/sources.ts";
import { TerraformProvisioner } from "#src/provisioners/terraform/terraform.ts";

type Options = {
  readonly config: Config;
  readonly provisioners?: Provisioners | undefined;
  readonly environment?: Readonly<Record<string, string | undefined>> | undefined;
  /** Files of images of repositories. */
  readonly repositories?: RepositorySources | undefined;
  readonly daemon?: readonly string[] | undefined;
};

/** The ways a workspace can come to life here. `local` is always there to stop and delete; it starts only where that is allowed. */
export const makeProvisioners = (
  { config, provisioners, environment, daemon, repositories }: Options,
  clock: Clock,
  accessUrl: () => URL,
  workers: Workers,
): Provisioners => {
  if (provisioners) return provisioners;
  const docker = new DockerProvisioner({
    host: config.docker_host,
    clock,
    accessUrl: () => containerAccessUrl(config.docker_access_url, accessUrl()),
    program: config.agent_binary,
    cutOff: containersCutOff(config),
    repositories,
    repositoryImages: config.repository_images_mb * 1024 * 1024,
    registry: imageRegistry(config),
  });
  const root = join(config.data_dir, "workspaces");
  const local = new LocalProvisioner({
    root,
    clock,
    accessUrl,
    environment,
    command: daemon,
    orphanTimeout: config.local_daemon_orphan_timeout,
    user: config.local_workspace_user,
    refusal: whyNoLocal(config),
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
  const made: Provisioner[] = [new EchoProvisioner(), docker, external, local, terraform];
  return new Map(made.map((one) => [one.name as string, one]));
};
