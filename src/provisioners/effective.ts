// Determines the provisioner that builds a manifest: the one that the manifest names or, for an external one, the one that the worker uses.
import type { Manifest } from "#schema/templates/manifest.ts";
import { isForBuiltIn } from "./external/tags.ts";

/** Returns `local`, `docker`, `echo` or `terraform`; undefined for an external manifest that does not name any. */
export const resolveProvisioner = (manifest: Pick<Manifest, "provisioner" | "external">): string | undefined =>
  manifest.provisioner === "external" ? manifest.external?.provisioner : manifest.provisioner;

/**
 * Returns the manifest as it is built. A manifest with tags is assigned to a worker, because the server itself does not take builds with
 * tags.
 */
export const assignToWorker = (manifest: Manifest): Manifest => {
  const { provisioner, tags } = manifest;
  if (provisioner === "external" || provisioner === "terraform" || isForBuiltIn(tags)) return manifest;
  return { ...manifest, provisioner: "external", external: { provisioner } };
};
