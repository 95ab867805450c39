// Builds repository images before a workspace needs them, and removes images that have been replaced.
import type { Clock } from "#base/clock.ts";
import type { RepositoryPlan } from "#schema/templates/repository.ts";
import { ProvisionError, type Report, type RepositoryImages } from "../provisioner.ts";
import type { RepositorySources } from "../repository/sources.ts";
import { Engine } from "./engine.ts";
import { checkImageName } from "./image-name.ts";
import { ensureImage } from "./pull.ts";
import type { ImageRegistry } from "./registry.ts";
import { ensureRepositoryImage, needsBuild, removeImageNamed, toGuardedPull } from "./repository-image.ts";

export type ImagesOptions = {
  readonly host: string | undefined;
  readonly clock: Clock;
  readonly sources: RepositorySources | undefined;
  readonly registry: ImageRegistry | undefined;
  /** Maximum bytes of all repository images. */
  readonly max_bytes: number;
  /** Maximum bytes of the files that a build sends to the engine. */
  readonly max_context_bytes?: number;
};

const STAGE = "Building ahead";
/** The memory limit of RUN steps, which is also the limit in the template for repositories. */
const MEMORY = "4g";

export class DockerImages implements RepositoryImages {
  readonly #options: ImagesOptions;

  constructor(options: ImagesOptions) {
    this.#options = options;
  }

  async build(plan: RepositoryPlan, owner_id: string, report: Report, signal: AbortSignal): Promise<readonly string[]> {
    const { host, clock, ...options } = this.#options;
    const { sources, registry } = options;
    const engine = new Engine(host, clock);
    await engine.connect(signal);
    const pull = { engine, clock, report, stage: STAGE, signal };
    const { image } = plan;
    if (!needsBuild(plan)) {
      if (image === undefined) throw new ProvisionError("The repository names no image.");
      checkImageName(image, registry?.name);
      await ensureImage(toGuardedPull({ ...pull, sources, owner_id }), image, "missing");
      report.log("info", STAGE, `The repository uses the image ${image}, which is already on the engine.`);
      return [];
    }
    const names: string[] = [];
    const onUse = (name: string): unknown => names.push(name);
    const docker = { image: image ?? "", memory: MEMORY };
    await ensureRepositoryImage({ ...pull, ...options, owner_id, plan, docker, onUse });
    return names;
  }

  async remove(names: readonly string[], signal: AbortSignal): Promise<void> {
    if (names.length === 0) return;
    const engine = new Engine(this.#options.host, this.#options.clock);
    await engine.connect(signal);
    for (const name of names) await removeImageNamed(engine, name, signal);
  }
}
