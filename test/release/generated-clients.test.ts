// Third-party generators for the OpenAPI document: their output compiles with strict settings, and a program that uses it creates a
// workspace and a chat on a real server. Each generator gets only some operations, because compiling all takes a minute.
// SLIPWAY_TEST_WHOLE_DOCUMENT uses the whole document.
import { afterAll, beforeAll, expect } from "bun:test";
import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Chat } from "#schema/chats/chat.ts";
import type { Workspace } from "#schema/workspaces/workspace.ts";
import { Client } from "#src/client.ts";
import { openChatWorld } from "#test/support/chats.ts";
import type { ScriptedModels } from "#test/support/models/scripted-models.ts";
import { needs, testNeeding } from "#test/support/needs.ts";
import { ADMIN, type TestServer } from "#test/support/server.ts";
import { TYPE_CHECKER, TYPE_CHECKER_ENV } from "#test/support/type-checker.ts";
import { seedTemplate } from "#test/support/workspaces.ts";

const GENERATORS = needs.generators.file;
const TAGS = ["Workspaces", "Builds"];
const OPERATION_IDS = ["createChat", "listMessages"];
/** openapi-python-client treats unknown content types as bytes. */
const BINARY_TYPES = [
  "application/x-tar",
  "application/zip",
  "application/pdf",
  "image/gif",
  "image/jpeg",
  "image/png",
  "image/webp",
];
const TEXT_TYPES = ["text/csv", "text/markdown", "text/plain"];

let server: TestServer;
let models: ScriptedModels;
let owner: Client;
let template_id: string;
const folder = mkdtempSync(join(tmpdir(), "slipway-generated-"));

beforeAll(async () => {
  if (!needs.generators.found) return;
  ({ server, models } = await openChatWorld());
  owner = await new Client(server.url).signIn(ADMIN.email, ADMIN.password);
  ({ template_id } = await seedTemplate(server));
  const document = (await (await owner.fetch("GET", "/swagger/json")).json()) as Document;
  const isWholeDocument = process.env.SLIPWAY_TEST_WHOLE_DOCUMENT !== undefined;
  writeFileSync(join(folder, "document.json"), JSON.stringify(isWholeDocument ? document : pickOperations(document)));
  symlinkSync(join(GENERATORS, "node_modules"), join(folder, "node_modules"));
  writeFileSync(join(folder, "package.json"), '{"type":"module"}');
});
afterAll(async () => {
  await server?.[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true, force: true });
});

type Operation = { readonly tags: readonly string[]; readonly operationId: string };
type Document = {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: { readonly schemas: Readonly<Record<string, unknown>> };
};

/** Returns the document with the selected operations and the schemas that they reference. */
const pickOperations = (document: Document): Document => {
  const isKept = ({ tags, operationId }: Operation) =>
    TAGS.includes(tags[0] ?? "") || OPERATION_IDS.includes(operationId);
  const paths = Object.fromEntries(
    Object.entries(document.paths).flatMap(([path, item]) => {
      const selected = Object.entries(item).filter(([, operation]) => isKept(operation));
      return selected.length > 0 ? [[path, Object.fromEntries(selected)]] : [];
    }),
  );
  const { schemas } = document.components;
  const usedNames = new Set(["Error"]);
  const pending: unknown[] = [paths, schemas.Error];
  for (let schema = pending.pop(); schema !== undefined; schema = pending.pop()) {
    for (const [, name = ""] of JSON.stringify(schema).matchAll(/#\/components\/schemas\/(\w+)/g)) {
      if (usedNames.has(name)) continue;
      usedNames.add(name);
      pending.push(schemas[name]);
    }
  }
  const selected = Object.fromEntries(Object.entries(schemas).filter(([name]) => usedNames.has(name)));
  const components = Object.assign({}, document.components, { schemas: selected });
  return Object.assign({}, document, { paths, components });
};

/** Removes types as described in docs/api.md, because openapi-python-client does not treat a schema with a type as nullable. */
const removeTypes = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(removeTypes);
  if (typeof value !== "object" || value === null) return value;
  const members = Object.entries(value).map(([key, inner]) => [key, removeTypes(inner)]);
  const isNullableSchema = "nullable" in value && "allOf" in value;
  return Object.fromEntries(members.filter(([key]) => !(isNullableSchema && key === "type")));
};

/** Runs a program in the folder and returns its output. */
const runCommand = async (command: string[], env: Readonly<Record<string, string>> = {}): Promise<string> => {
  const child = Bun.spawn(command, {
    cwd: folder,
    env: Object.assign({ PATH: `${process.env.PATH}:/usr/local/go/bin`, HOME: process.env.HOME, NO_COLOR: "1" }, env),
    stdio: ["ignore", "pipe", "pipe"],
  });
  const [output, errors, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
  if (code !== 0) throw new Error(`${command.slice(0, 3).join(" ")} ended with ${code}:\n${output}${errors}`);
  return output + errors;
};

const compile = (...files: string[]): Promise<string> => {
  const lib = ["ES2023", "DOM", "DOM.Iterable"];
  const options = {
    strict: true,
    noEmit: true,
    skipLibCheck: true,
    target: "ES2022",
    module: "preserve",
    lib,
    types: [],
  };
  const compilerOptions = Object.assign({ allowImportingTsExtensions: true, moduleResolution: "bundler" }, options);
  writeFileSync(join(folder, "tsconfig.json"), JSON.stringify({ compilerOptions, files }));
  return runCommand([process.execPath, ...TYPE_CHECKER, "-p", folder], TYPE_CHECKER_ENV);
};

/** Runs a program that uses the client. Its arguments are URL, token, template and the name of its workspace. */
const runProgram = async (name: string, command: string[], env: Record<string, string> = {}): Promise<void> => {
  const running = runCommand(
    [...command, server.url.href.replace(/\/$/, ""), owner.token ?? "", template_id, name],
    env,
  );
  expect((await running).trim()).toBe(`${name} ${ADMIN.username}`);
  const { workspaces } = await owner.get<{ workspaces: Workspace[] }>(`/api/v2/workspaces?q=name:${name}`);
  expect(workspaces.map((workspace) => workspace.name)).toEqual([name]);
  (await models.next()).say("Hello.").finish();
  const chats = await owner.get<Chat[]>("/api/v2/chats");
  expect(chats.some(({ workspace_id }) => workspace_id === workspaces[0]?.id)).toBe(true);
};

testNeeding([needs.generators], "[HT-45] openapi-typescript with openapi-fetch", async () => {
  await runCommand([
    needs.node.file,
    "node_modules/openapi-typescript/bin/cli.js",
    "document.json",
    "-o",
    "schema.d.ts",
  ]);
  writeFileSync(
    join(folder, "fetching.ts"),
    `import createClient from "openapi-fetch";
import type { paths } from "./schema.d.ts";
declare const process: { argv: string[] };
declare const console: { log(text: string): void };
const [, , baseUrl = "", token = "", template_id = "", name = ""] = process.argv;
const client = createClient<paths>({ baseUrl, headers: { "Service-Session-Token": token } });
const { data: workspace, error } = await client.POST("/api/v2/users/{user}/workspaces", {
  params: { path: { user: "me" } },
  body: { name, template_id },
});
if (!workspace) throw new Error(error.message);
const { data: chat } = await client.POST("/api/v2/chats", {
  body: { organization_id: workspace.organization_id, workspace_id: workspace.id, content: [{ type: "text", text: "hi" }] },
});
if (!chat) throw new Error("no chat");
console.log(\`\${workspace.name} \${workspace.owner_name}\`);
`,
  );
  expect(await compile("fetching.ts")).toBe("");
  await runProgram("fetching", [process.execPath, "fetching.ts"]);
});

testNeeding([needs.generators], "[HT-45] @hey-api/openapi-ts", async () => {
  await runCommand([
    needs.node.file,
    "node_modules/@hey-api/openapi-ts/bin/run.js",
    "-i",
    "document.json",
    "-o",
    "hey",
  ]);
  writeFileSync(
    join(folder, "heying.ts"),
    `import { createChat, createWorkspace } from "./hey";
import { client } from "./hey/client.gen";
declare const process: { argv: string[] };
declare const console: { log(text: string): void };
const [, , baseUrl = "", token = "", template_id = "", name = ""] = process.argv;
client.setConfig({ baseUrl, headers: { "Service-Session-Token": token } });
const { data: workspace } = await createWorkspace({ path: { user: "me" }, body: { name, template_id }, throwOnError: true });
const content = [{ type: "text", text: "hi" }];
const { organization_id, id: workspace_id } = workspace;
await createChat({ body: { organization_id, workspace_id, content }, throwOnError: true });
console.log(\`\${workspace.name} \${workspace.owner_name}\`);
`,
  );
  expect(await compile("heying.ts")).toBe("");
  await runProgram("heying", [process.execPath, "heying.ts"]);
});

testNeeding([needs.generators], "[HT-45] openapi-python-client, without a warning", async () => {
  const overrides = [...BINARY_TYPES, ...TEXT_TYPES].map((type) => [type, "application/octet-stream"]);
  const config = { post_hooks: [], content_type_overrides: Object.fromEntries(overrides) };
  writeFileSync(join(folder, "config.json"), JSON.stringify(config));
  const python = join(GENERATORS, "python/bin/python");
  const document = await Bun.file(join(folder, "document.json")).json();
  writeFileSync(join(folder, "for-python.json"), JSON.stringify(removeTypes(document)));
  const options = [
    "--path",
    "for-python.json",
    "--meta",
    "none",
    "--output-path",
    "generated",
    "--config",
    "config.json",
  ];
  const output = await runCommand([join(GENERATORS, "python/bin/openapi-python-client"), "generate", ...options]);
  expect(output.trim()).toBe("Generating generated");
  writeFileSync(
    join(folder, "story.py"),
    `import sys
from generated import Client
from generated.api.chats import create_chat
from generated.api.workspaces import create_workspace
from generated.models import ChatInputPart, CreateChatRequest, CreateWorkspaceRequest

url, token, template, name = sys.argv[1:]
client = Client(base_url=url, headers={"Service-Session-Token": token}, raise_on_unexpected_status=True)
workspace = create_workspace.sync("me", client=client, body=CreateWorkspaceRequest(name=name, template_id=template))
content = [ChatInputPart(type_="text", text="hi")]
body = CreateChatRequest(organization_id=workspace.organization_id, workspace_id=workspace.id, content=content)
create_chat.sync(client=client, body=body)
print(workspace.name, workspace.owner_name)
`,
  );
  await runCommand([python, "-m", "compileall", "-q", "generated"]);
  await runProgram("pythonic", [python, "story.py"], { PYTHONDONTWRITEBYTECODE: "1" });
});

testNeeding([needs.generators], "[HT-45] oapi-codegen", async () => {
  const module = join(folder, "go");
  cpSync(join(GENERATORS, "go"), module, { recursive: true });
  mkdirSync(join(module, "client"));
  const file = join(module, "client/client.go");
  await runCommand([
    join(GENERATORS, "oapi-codegen"),
    "-generate",
    "types,client",
    "-package",
    "client",
    "-o",
    file,
    "document.json",
  ]);
  writeFileSync(
    join(module, "main.go"),
    `package main

import (
	"context"
	"fmt"
	"net/http"
	"os"

	"generated/client"

	"github.com/google/uuid"
)

func main() {
	url, token, template, name := os.Args[1], os.Args[2], uuid.MustParse(os.Args[3]), os.Args[4]
	sign := func(_ context.Context, request *http.Request) error {
		request.Header.Set("Service-Session-Token", token)
		return nil
	}
	api, err := client.NewClientWithResponses(url, client.WithRequestEditorFn(sign))
	if err != nil {
		panic(err)
	}
	body := client.CreateWorkspaceRequest{Name: name, TemplateId: &template}
	made, err := api.CreateWorkspaceWithResponse(context.Background(), "me", body)
	if err != nil || made.JSON200 == nil {
		panic(fmt.Sprint(err, string(made.Body)))
	}
	workspace, text := made.JSON200, "hi"
	content := []client.ChatInputPart{{Type: "text", Text: &text}}
	asked := client.CreateChatRequest{OrganizationId: workspace.OrganizationId, WorkspaceId: &workspace.Id, Content: content}
	chat, err := api.CreateChatWithResponse(context.Background(), nil, asked)
	if err != nil || chat.JSON201 == nil {
		panic(fmt.Sprint(err, string(chat.Body)))
	}
	fmt.Println(workspace.Name, workspace.OwnerName)
}
`,
  );
  const env = { GOFLAGS: "-mod=vendor -p=2 -buildvcs=false", CGO_ENABLED: "0", GOTOOLCHAIN: "local" };
  await runCommand(["go", "build", "-C", module, "-o", join(folder, "story"), "."], env);
  await runProgram("going", [join(folder, "story")]);
});
