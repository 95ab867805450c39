// A mirror of the files stored by `.ci/editors`, in the layout that the starter templates expect: code-server releases, and a Python
// package index of the wheels.
import { existsSync, readdirSync } from "node:fs";
import { join, normalize } from "node:path";

export const serveEditors = (folder: string): Disposable & { readonly url: string } => {
  const wheels = readdirSync(join(folder, "python"));
  const toPackageName = (file: string): string => (file.split("-")[0] ?? "").replaceAll(/[-_.]+/g, "-").toLowerCase();
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch: ({ url }) => {
      const path = decodeURIComponent(new URL(url).pathname);
      const [, name] = /^\/simple\/([^/]+)\/?$/.exec(path) ?? [];
      if (name !== undefined) {
        const links = wheels
          .filter((file) => toPackageName(file) === name)
          .map((file) => `<a href="/python/${file}">${file}</a>`);
        return links.length === 0
          ? new Response("", { status: 404 })
          : new Response(links.join("\n"), { headers: { "content-type": "text/html" } });
      }
      const file = join(folder, normalize(path));
      return existsSync(file) ? new Response(Bun.file(file)) : new Response("", { status: 404 });
    },
  });
  return { url: server.url.href.replace(/\/$/, ""), [Symbol.dispose]: () => void server.stop(true) };
};
