// Generates the npm package `@slipway/client`: types by openapi-typescript from the document, a table of the operations, and the runtime in
// deploy/clients/typescript.
import { copyFileSync, cpSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { ReleaseInputs } from "../inputs.ts";
import { packForNpm } from "../npm.ts";
import { runTool } from "../tools.ts";
import { getReference, listOperations, type OpenApi, type Schema } from "./document.ts";

/** Writes `npm/slipway-client-<version>.tgz`. Returns its path. */
export const makeTypeScriptClient = (inputs: ReleaseInputs, document: OpenApi): Promise<string> =>
  packForNpm(inputs, "slipway-client", async (folder) => {
    const source = join(inputs.root, "deploy/clients/typescript");
    const build = join(inputs.scratch, "typescript-client");
    cpSync(source, build, { recursive: true });
    const types = await printTypes(inputs, document);
    writeFileSync(join(build, "src/schema.d.ts"), types);
    writeFileSync(join(build, "src/operations.ts"), printOperations(document));
    writeFileSync(join(build, "package.json"), '{ "type": "module" }');
    await runTool([process.execPath, join(inputs.root, "node_modules/typescript/bin/tsc"), "-p", build]);
    cpSync(join(build, "dist"), join(folder, "dist"), { recursive: true });
    writeFileSync(join(folder, "dist/schema.d.ts"), types);
    for (const name of ["README.md", "example.mjs"]) copyFileSync(join(source, name), join(folder, name));
    rmSync(build, { recursive: true });
    return {
      name: "@slipway/client",
      version: inputs.version,
      description: "Client of the API of a Slipway server.",
      license: "Apache-2.0",
      type: "module",
      sideEffects: false,
      engines: { node: ">=20.3" },
      exports: { ".": { types: "./dist/index.d.ts", default: "./dist/index.js" } },
      types: "./dist/index.d.ts",
    };
  });

/**
 * The generator requires TypeScript 5 but would import the newest version, so it runs in a process where that name resolves to version 5.
 */
const printTypes = async ({ root, scratch }: ReleaseInputs, document: OpenApi): Promise<string> => {
  const file = join(scratch, "openapi.json");
  mkdirSync(scratch, { recursive: true });
  writeFileSync(file, JSON.stringify(document));
  return runTool([process.execPath, join(root, "src/release/clients/print-types.ts"), file]);
};

const printOperations = (document: OpenApi): string => {
  const operations = listOperations(document);
  const rows = operations.map(({ name, method, path, body, hasKey, sends }) => {
    const members = [
      `method: ${JSON.stringify(method)}, path: ${JSON.stringify(path)}`,
      ...(body ? [`body: ${JSON.stringify(body.type)}`] : []),
      ...(hasKey ? ["hasKey: true"] : []),
      ...(sends ? ["isStream: true"] : []),
    ];
    return `  ${name}: { ${members.join(", ")} },`;
  });
  const streams = operations.flatMap(({ name, sends }) => (sends ? [`  ${name}: ${formatType(sends)};`] : []));
  return [
    "// Printed from the OpenAPI document.",
    'import type { components } from "./schema.js";',
    "/** The type of the events of each stream. */",
    "export interface Streams {",
    ...streams,
    "}",
    "export const OPERATIONS = {",
    ...rows,
    "} as const;",
    "",
  ].join("\n");
};

const formatType = (schema: Schema): string => {
  const name = getReference(schema);
  if (name !== undefined) return `components["schemas"][${JSON.stringify(name)}]`;
  return schema.type === "array" && schema.items ? `${formatType(schema.items)}[]` : "unknown";
};
