// `import text from "./x.txt" with { type: "text" }` gives the file's content; Bun embeds it in the binary.
declare module "*.txt" {
  const text: string;
  export default text;
}
