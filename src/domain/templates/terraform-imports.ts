// Dependencies of Terraform imports.
import type { TerraformImports } from "#actors/template-version/import-terraform.ts";
import { ExternalProvisioner } from "#src/provisioners/external/external.ts";
import { ProvisionError } from "#src/provisioners/provisioner.ts";
import { TerraformProvisioner } from "#src/provisioners/terraform/terraform.ts";
import type { DomainContext } from "../context.ts";
import { storeArchive } from "../template-versions/create.ts";

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
    keep: (bytes, user_id) => storeArchive(ctx, bytes, user_id, "application/x-tar"),
  };
};
