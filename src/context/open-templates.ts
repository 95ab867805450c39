// Template versions: their actors, imports and dry runs.
import { Directory } from "#actors/runtime/directory.ts";
import type { JobQueue } from "#actors/runtime/job-queue.ts";
import { TemplateVersionActor } from "#actors/template-version/actor.ts";
import { DryRunActor } from "#actors/template-version/dry-run-actor.ts";
import { DryRunRunner } from "#actors/template-version/dry-run-runner.ts";
import { ImportRunner } from "#actors/template-version/import-runner.ts";
import type { TerraformImports } from "#actors/template-version/import-terraform.ts";
import type { Provisioners } from "#actors/workspace/build-runner.ts";
import type { Blobs } from "#db/blobs.ts";
import type { ProvisionRequest } from "#src/provisioners/provisioner.ts";
import type { Base } from "./base.ts";

type Parts = Base & {
  readonly blobs: Blobs;
  readonly jobs: JobQueue;
  readonly provisioners: Provisioners;
  /** Plans templates of Terraform; undefined where none are run. */
  readonly terraform: TerraformImports | undefined;
  /** Adds what a template of Terraform needs alongside the request. */
  readonly equip: (request: ProvisionRequest) => Promise<ProvisionRequest>;
};

export const openTemplates = (parts: Parts) => {
  const { store, clock, topics, encryption, accessUrl, copy, elsewhere, blobs, jobs, provisioners, terraform, equip } =
    parts;
  const imports = new ImportRunner({ store, clock, blobs, jobs, encryption, terraform, versions: () => versions });
  const versions: Directory<TemplateVersionActor> = new Directory(
    (id) => new TemplateVersionActor(id, { store, clock, topics, imports }),
    clock,
    { copy, elsewhere: elsewhere("template_version") },
  );
  const runs = new DryRunRunner({ clock, jobs, provisioners, equip, dryRuns: () => dryRuns });
  const dryRuns: Directory<DryRunActor> = new Directory(
    (id) => new DryRunActor(id, { store, clock, topics, runs, encryption, accessUrl }),
    clock,
    { copy, elsewhere: elsewhere("job") },
  );
  return { versions, dryRuns, imports, runs };
};
