// Determines the provisioner that a manifest uses in the end: the one it names, or the one its external worker is to use.
import type { Manifest } from "#schema/templates/manifest.ts";
import { isForBuiltIn } from "./external/tags.ts";

/** Returns `local`, `docker` or `echo`; undefined for an external one that does not name any. */
export const resolveProvisioner = (manifest: Pick<Manifest, "provisioner" | "external">): string | undefined =>
  manifest.provisioner === "external" ? manifest.external?.provisioner : manifest.provisioner;

/** Returns the manifest as it is built: with tags, a worker uses the provisioner, because the server itself takes no builds with tags. */
export const assignToWorker = (manifest: Manifest): Manifest => {
  const { provisioner, tags } = manifest;
  if (provisioner === "external" || provisioner === "terraform" || isForBuiltIn(tags)) return manifest;
  return { ...manifest, provisioner: "external", external: { provisioner } };
};
