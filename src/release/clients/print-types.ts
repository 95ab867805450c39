// Prints the types of an OpenAPI document file. A separate program, in which `typescript` is version 5 for openapi-typescript.
import { plugin } from "bun";

plugin({
  name: "typescript-5",
  setup(build) {
    build.module("typescript", async () => {
      const { default: typescript } = await import("typescript-5");
      return { exports: { default: typescript }, loader: "object" };
    });
  },
});

const { default: typescript } = await import("typescript-5");
const { default: toTypes, astToString } = await import("openapi-typescript");

/** The type of bytes in requests and responses. As a string, they would be treated as text. */
const blob = typescript.factory.createTypeReferenceNode("Blob");
const [, , file = ""] = process.argv;
const nodes = await toTypes(await Bun.file(file).json(), {
  transform: ({ format }) => (format === "binary" ? blob : undefined),
});
// Omits the types by path, which would double the size: the client calls operations by name.
const printed = nodes.filter((node) => !(typescript.isInterfaceDeclaration(node) && node.name.text === "paths"));
process.stdout.write(`// Printed from the OpenAPI document.\n${astToString(printed)}`);
