// The packages of third parties in the program are listed, and their licenses allow that.
import { expect, test } from "bun:test";
import { listShippedPackages, toBillOfMaterials } from "#src/supply-chain.ts";

/**
 * Licenses that allow distribution as a single file with notices. MPL-2.0 requires the source of its own files: they are distributed
 * unchanged, and THIRD_PARTY.md says where they are. OFL-1.1 applies to fonts, which are distributed unchanged.
 */
const ALLOWED_LICENSES =
  /^(MIT|MIT-0|MPL-2\.0|Apache-2\.0|ISC|0BSD|BSD-[23]-Clause|CC0-1\.0|AFL-2\.1|Unlicense|OFL-1\.1|BlueOak-1\.0\.0)$/;

test("[RP-31] every shipped package has a license that allows redistribution", () => {
  const packages = listShippedPackages();
  expect(packages.map(({ name }) => name)).toContain("elysia");
  const terms = packages.map(({ name, license }) => ({
    name,
    licenses: license.replace(/[()]/g, "").split(/ (?:AND|OR) /),
  }));
  expect(terms.filter(({ licenses }) => !licenses.every((license) => ALLOWED_LICENSES.test(license)))).toEqual([]);
  // Development tools are not part of the program.
  expect(packages.map(({ name }) => name)).not.toContain("@biomejs/biome");
});

test("[RP-31] the bill of materials has each package once, with its hash and dependencies", () => {
  const { components, dependencies } = toBillOfMaterials();
  const refs = components.map((component) => component["bom-ref"]);
  expect(new Set(refs).size).toBe(refs.length);
  expect(components.every(({ hashes }) => /^[0-9a-f]{128}$/.test(hashes[0]?.content ?? ""))).toBe(true);
  expect(dependencies.find(({ ref }) => ref === "slipway")?.dependsOn.length).toBeGreaterThan(20);
  expect(dependencies.flatMap(({ dependsOn }) => dependsOn).filter((ref) => !refs.includes(ref))).toEqual([]);
});
