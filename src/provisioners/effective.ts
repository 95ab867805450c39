// Determines the provisioner that a manifest uses in the end: the one it names, or the one its external worker is to use.
import type { Manifest } from "#schema/templates/manifest.ts";

/** Returns `local`, `docker` or `echo`; undefined for an external one that does not name any. */
export const resolveProvisioner = (manifest: Pick<Manifest, "provisioner" | "external">): string | undefined =>
  manifest.provisioner === "external" ? manifest.external?.provisioner : manifest.provisioner;
