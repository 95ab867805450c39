// Dependencies of Terraform imports.
import type { TerraformImports } from "#actors/template-version/import-terraform.ts";
import { uuid } from "#base/ids.ts";
import { ExternalProvisioner } from "#src/provisioners/external/external.ts";
import { ProvisionError } from "#src/provisioners/provisioner.ts";
import { TerraformProvisioner } from "#src/provisioners/terraform/terraform.ts";
import type { DomainContext } from "../context.ts";
import { remember } from "./uploads.ts";

type Deps = Pick<DomainContext, "store" | "clock" | "blobs" | "links" | "provisioners" | "accessUrl" | "jobs">;

/** Returns undefined when the server runs no Terraform templates. */
export const terraformImports = (ctx: Deps): TerraformImports | undefined => {
  const terraform = ctx.provisioners.get("terraform");
  if (!(terraform instanceof TerraformProvisioner)) return undefined;
  const external = ctx.provisioners.get("external");
  return {
    run({ request, source, report }, worker, signal) {
      if (worker.id === ctx.jobs.worker.id) return terraform.importTemplate(request, source, report, signal);
      if (external instanceof ExternalProvisioner) return external.importTemplate(request, report, signal);
      throw new ProvisionError("This server has no workers.");
    },
    accessUrl: () => ctx.accessUrl,
    accounts: () => [...ctx.links.providers.keys()],
    async keep(bytes, user_id) {
      const { hash, size } = await ctx.blobs.put(streamBytes(bytes));
      const mimetype = "application/x-tar";
      const row = { id: uuid(), hash, size, mimetype, created_by: user_id, created_at: ctx.clock.now() };
      return (await remember(ctx.store, row)).id;
    },
  };
};

async function* streamBytes(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes;
}
