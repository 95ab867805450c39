// Parses the platforms in Dockerfiles, such as linux/arm64, and checks whether an image is for a platform. Pure.
import { ProvisionError } from "../provisioner.ts";

/**
 * A platform in Docker's normalized form: `variant` is empty for an architecture's default variant, except that 32-bit ARM always has a
 * variant.
 */
export type Platform = { readonly os: string; readonly architecture: string; readonly variant: string };

const KNOWN_ARCHITECTURES = ["386", "amd64", "arm", "arm64", "loong64", "mips64le", "ppc64le", "riscv64", "s390x"];
const ARCHITECTURE_ALIASES: ReadonlyMap<string, readonly [architecture: string, variant: string]> = new Map([
  ["i386", ["386", ""]],
  ["x86_64", ["amd64", ""]],
  ["x86-64", ["amd64", ""]],
  ["aarch64", ["arm64", ""]],
  ["armhf", ["arm", "v7"]],
  ["armel", ["arm", "v6"]],
]);
const DEFAULT_VARIANTS: ReadonlyMap<string, string> = new Map([
  ["amd64", "v1"],
  ["arm64", "v8"],
]);

/** Parses `linux/arm64`, `linux/arm/v7` or `arm64`. Returns undefined if a part is empty. Throws ProvisionError for an invalid platform. */
export const parsePlatform = (text: string): Platform | undefined => {
  const parts = text.toLowerCase().split("/");
  if (parts.includes("")) return undefined;
  const [os = "", architecture = "", variant = ""] = parts.length === 1 ? ["linux", ...parts] : parts;
  const platform = normalize(os, architecture, variant);
  const isNamed = parts.length > 1 || KNOWN_ARCHITECTURES.includes(platform.architecture);
  if (isNamed && parts.length <= 3 && parts.every((part) => /^[\w-]+$/.test(part))) return platform;
  throw new ProvisionError(
    `The Dockerfile has FROM --platform=${text}. Write the operating system and the architecture, such as linux/amd64.`,
  );
};

export const formatPlatform = ({ os, architecture, variant }: Platform): string =>
  [os, architecture, ...(variant === "" ? [] : [variant])].join("/");

type Inspected = { readonly Os?: string; readonly Architecture?: string; readonly Variant?: string };

/** Returns true if the engine uses the image for the platform. An image without a variant is used for every variant. */
export const isForPlatform = (
  { Os = "linux", Architecture = "", Variant = "" }: Inspected,
  wanted: Platform,
): boolean => {
  const imagePlatform = normalize(Os.toLowerCase(), Architecture.toLowerCase(), Variant.toLowerCase());
  if (imagePlatform.os !== wanted.os || imagePlatform.architecture !== wanted.architecture) return false;
  return Variant === "" || imagePlatform.variant === wanted.variant;
};

const normalize = (os: string, name: string, variantName: string): Platform => {
  const [architecture, implied] = ARCHITECTURE_ALIASES.get(name) ?? [name, ""];
  const variant = (implied || variantName).replace(/^(?=\d)/, "v");
  if (architecture === "arm") return { os, architecture, variant: variant || "v7" };
  return { os, architecture, variant: variant === DEFAULT_VARIANTS.get(architecture) ? "" : variant };
};
