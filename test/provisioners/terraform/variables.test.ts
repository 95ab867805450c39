// Parses the variables that a template declares, and writes their values.
import { expect, test } from "bun:test";
import { toVariablesWithoutWorkspace } from "#src/provisioners/terraform/environment.ts";
import {
  formatVariablesFile,
  parseAssignedNames,
  parseDeclaredVariables,
} from "#src/provisioners/terraform/variables.ts";
import { loadExpected, templateFolder } from "./comparison.ts";

test("[TF-5] parses a template's variables with their types, defaults and sensitivity", async () => {
  const text = await Bun.file(`${templateFolder("parameters")}/main.tf`).text();
  const { variables = [] } = await loadExpected("parameters");
  const declared = parseDeclaredVariables([{ name: "main.tf", text }]);
  expect(declared.map(({ name, type, sensitive }) => ({ name, type, sensitive }))).toEqual(
    variables.map(({ name, type, sensitive }) => ({ name, type, sensitive })),
  );
  expect(declared.map((variable) => variable.default)).toEqual(["registry.example.com", "", "16", '["a", "b"]']);
});

test("[TF-5] ignores text that only looks like a variable: comments, strings, heredocs, other words, inner blocks", () => {
  const text = `# variable "comment" {}
locals { my_variable = "variable \\"text\\" {" }
/* variable "long_comment" {} */
resource "x" "y" { a = <<-EOT
  variable "heredoc" {
  EOT
}
variable "kept" {
  type = object({ a = string, b = optional(number, 1) }) // behind it
  default = { a = "}\${"{"}" }
  validation {
    condition     = true
    error_message = "} default = 1"
  }
  sensitive = true
}
variable "required" {}`;
  expect(parseDeclaredVariables([{ name: "a.tf", text }])).toEqual([
    {
      name: "kept",
      description: "",
      sensitive: true,
      type: "object({ a = string, b = optional(number, 1) })",
      default: '{ a = "}${"{"}" }',
    },
    { name: "required", description: "", type: "", default: undefined, sensitive: false },
  ]);
});

test("[TF-5] supports JSON files, the order of files, and values from a file", () => {
  const json = JSON.stringify({ variable: { b: { type: "number", default: 3 }, c: [{ description: "C" }] } });
  const names = parseDeclaredVariables([
    { name: "z.tf.json", text: json },
    { name: "a.tf", text: 'variable "a" { default = "x" }' },
  ]).map((variable) => [variable.name, variable.default]);
  expect(names).toEqual([
    ["a", "x"],
    ["b", "3"],
    ["c", undefined],
  ]);
  expect(parseAssignedNames([{ name: "terraform.tfvars", text: "a = 1\n# b = 2\nc = <<E\nd = 1\nE\n" }])).toEqual(
    new Set(["a", "c"]),
  );
});

test("[TF-5] escapes values, so that they neither end their line nor are evaluated as templates", () => {
  const written = formatVariablesFile(
    [
      { name: "text", type: "string" },
      { name: "list", type: "list(string)" },
      { name: "other", type: "" },
    ],
    // biome-ignore lint/suspicious/noTemplateCurlyInString: it is HCL's
    { text: 'a"b\n${c}%{d}\\\b', list: '["x"]\nother = "y"', unknown: "z" },
  );
  expect(written).toBe('text = "a\\"b\\n$${c}%%{d}\\\\\\u0008"\nlist = (["x"]\nother = "y")\n');
});

test("[TF-42] uses the username for an owner without a full name, in the plans of form and build", () => {
  const owner = { id: "1", username: "alice", full_name: "", email: "a@example.com", login_type: "password" };
  const getOwnerName = (full_name: string): string | undefined =>
    toVariablesWithoutWorkspace("start", {
      access_url: "http://h:1/",
      initScript: () => "",
      owner: { ...owner, full_name, groups: [], roles: [] },
    }).CODER_WORKSPACE_OWNER_NAME;
  expect([getOwnerName(""), getOwnerName("Alice A.")]).toEqual(["alice", "Alice A."]);
});
