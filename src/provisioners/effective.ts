// Determines which provisioner builds a manifest: the one that the manifest names, or, for `external`, the one that the worker uses.
import type { Manifest } from "#schema/templates/manifest.ts";
import { isForBuiltIn } from "./external/tags.ts";

/** Returns `local`, `docker`, `echo` or `terraform`; undefined if an external manifest does not name the worker's provisioner. */
export const resolveProvisioner = (manifest: Pick<Manifest, "provisioner" | "external">): string | undefined =>
  manifest.provisioner === "external" ? manifest.external?.provisioner : manifest.provisioner;

/** Changes a manifest with tags to the provisioner `external`, because the server itself does not run builds with tags. */
export const assignToWorker = (manifest: Manifest): Manifest => {
  const { provisioner, tags } = manifest;
  if (provisioner === "external" || provisioner === "terraform" || isForBuiltIn(tags)) return manifest;
  return { ...manifest, provisioner: "external", external: { provisioner } };
};
