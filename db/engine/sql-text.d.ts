// `import text from "./x.sql" with { type: "text" }` gives the file's content; Bun embeds it in the binary.
declare module "*.sql" {
  const text: string;
  export default text;
}
