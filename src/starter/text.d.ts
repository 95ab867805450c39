// Texts embedded by Bun: `import text from "./x.md" with { type: "text" }`.
declare module "*/template.yaml" {
  const text: string;
  export default text;
}
declare module "*/main.tf" {
  const text: string;
  export default text;
}
declare module "*/README.md" {
  const text: string;
  export default text;
}
