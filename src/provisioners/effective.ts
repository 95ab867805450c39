// Which provisioner a manifest is for in the end: the one it names, or the one a worker of its own is to use.
import type { Manifest } from "#schema/templates/manifest.ts";

/** What brings the workspace to life: `local`, `docker` or `echo`; undefined for an external one that does not say. */
export const effectiveProvisioner = (manifest: Pick<Manifest, "provisioner" | "external">): string | undefined =>
  manifest.provisioner === "external" ? manifest.external?.provisioner : manifest.provisioner;
