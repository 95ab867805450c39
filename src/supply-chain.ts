// Lists the third-party packages in the program, from bun.lock and the packages themselves: as licenses (THIRD_PARTY.md, `bun run
// licences`) and as a CycloneDX bill of materials next to the binary (`bun run build`).
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { VERSION } from "#base/version.ts";

const ROOT = fileURLToPath(new URL("..", import.meta.url));

/** A registry package that is part of the program. */
export type ShippedPackage = {
  readonly name: string;
  readonly version: string;
  /** An SPDX expression. */
  readonly license: string;
  /** SHA-512 of its archive, hex. */
  readonly sha512: string;
  /** The package's dependencies. */
  readonly needs: readonly ShippedPackage[];
};

/** `[name@version, registry, {dependencies}, integrity]` by its position in the tree, such as `a` or `a/b`. */
type Lock = { readonly packages: Readonly<Record<string, readonly [string, string, PackageDependencies, string]>> };
type PackageDependencies = { readonly dependencies?: Record<string, string> };

/** Returns the production dependencies of package.json and their dependencies, by name. Development dependencies are excluded. */
export const listShippedPackages = (root = ROOT): ShippedPackage[] => {
  const packagesByPath = new Map<string, ShippedPackage>();
  const packages = parseLock(root);
  const visit = (path: string): ShippedPackage[] => {
    const entry = packages[path];
    const visited = packagesByPath.get(path);
    if (!entry || visited) return visited ? [visited] : [];
    const [id, , { dependencies = {} }, integrity] = entry;
    const index = id.lastIndexOf("@");
    const needs: ShippedPackage[] = [];
    const shipped: ShippedPackage = {
      name: id.slice(0, index),
      version: id.slice(index + 1),
      license: findLicense(root, path),
      sha512: Buffer.from(integrity.replace(/^sha512-/, ""), "base64").toString("hex"),
      needs,
    };
    // Added before its dependencies, because two packages may depend on each other.
    packagesByPath.set(path, shipped);
    for (const name of Object.keys(dependencies)) needs.push(...visit(findNearest(packages, path, name)));
    return [shipped];
  };
  for (const name of listDirectDependencies(root)) visit(name);
  const compare = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0);
  // The same version may occur at several positions.
  const byUrl = new Map([...packagesByPath.values()].map((one) => [toPackageUrl(one), one]));
  return [...byUrl.values()].sort((a, b) => compare(a.name, b.name) || compare(a.version, b.version));
};

const parseLock = (root: string): Lock["packages"] => {
  const text = readFileSync(join(root, "bun.lock"), "utf8");
  return (JSON.parse(text.replace(/,(?=\s*[}\]])/g, "")) as Lock).packages;
};

const listDirectDependencies = (root: string): string[] =>
  Object.keys((JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as { dependencies: object }).dependencies);

/** Resolves a dependency: below the package itself, otherwise below its parents, otherwise at the top. */
const findNearest = (packages: Lock["packages"], path: string, name: string): string => {
  for (let parent = path; parent !== ""; parent = parent.slice(0, Math.max(0, parent.lastIndexOf("/")))) {
    if (`${parent}/${name}` in packages) return `${parent}/${name}`;
  }
  return name;
};

const findLicense = (root: string, path: string): string => {
  const folder = join(
    root,
    "node_modules",
    ...toFolders(path).flatMap((name, i) => (i === 0 ? [name] : ["node_modules", name])),
  );
  const file = join(folder, "package.json");
  if (!existsSync(file)) return "UNKNOWN";
  const { license, licenses } = JSON.parse(readFileSync(file, "utf8")) as { license?: unknown; licenses?: unknown };
  const declared = license ?? (Array.isArray(licenses) ? licenses[0] : licenses);
  return typeof declared === "string" ? declared : ((declared as { type?: string } | undefined)?.type ?? "UNKNOWN");
};

/** `@a/b/c` is `c` below `@a/b`. */
const toFolders = (path: string): string[] => path.match(/(?:@[^/]+\/)?[^/]+/g) ?? [path];

/** Returns the expected content of THIRD_PARTY.md. */
export const formatThirdParty = (packages = listShippedPackages()): string =>
  [
    "# Third-party packages",
    "",
    "What the program ships of other people's work, with its licence. Written by `bun run docs`; the texts of the licences are in the",
    "packages. The runtime inside the binary is Bun (MIT, with the parts its own licence file names). The source of packages under MPL-2.0",
    "is the package itself, unchanged, in npm's registry under its name and version.",
    "",
    "| package | version | licence |",
    "|---|---|---|",
    ...packages.map(({ name, version, license }) => `| ${name} | ${version} | ${license} |`),
    "",
  ].join("\n");

const toPackageUrl = ({ name, version }: ShippedPackage): string => `pkg:npm/${name.replace("@", "%40")}@${version}`;

/** Returns the bill of materials, CycloneDX 1.6. */
export const toBillOfMaterials = (packages = listShippedPackages()) => {
  const direct = new Set(listDirectDependencies(ROOT));
  const toComponent = (one: ShippedPackage) => ({
    type: "library",
    "bom-ref": toPackageUrl(one),
    name: one.name,
    version: one.version,
    purl: toPackageUrl(one),
    licenses: [/[ ()]/.test(one.license) ? { expression: one.license } : { license: { id: one.license } }],
    hashes: [{ alg: "SHA-512", content: one.sha512 }],
  });
  const program = { type: "application", "bom-ref": "slipway", name: "slipway", version: VERSION };
  return {
    bomFormat: "CycloneDX",
    specVersion: "1.6",
    version: 1,
    metadata: { component: { ...program, licenses: [{ license: { id: "Apache-2.0" } }] } },
    components: packages.map(toComponent),
    dependencies: [
      { ref: "slipway", dependsOn: packages.filter(({ name }) => direct.has(name)).map(toPackageUrl) },
      ...packages.map((one) => ({ ref: toPackageUrl(one), dependsOn: one.needs.map(toPackageUrl) })),
    ],
  };
};
