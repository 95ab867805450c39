// The plain pages, which are not part of the app. Each file contains a title and the main content; all pages share one frame.
import { basename, join } from "node:path";
import type { WebFile } from "./files.ts";
import { encode, PREFIX } from "./installable.ts";

const FOLDER = import.meta.dirname;
const FRAME_FILE = "plain-page.html";

/** Returns the complete page: the frame with the page's title, content and script. Throws if the file does not begin with a title. */
const wrapInFrame = async (page: string): Promise<string> => {
  const [frame, content] = await Promise.all([FRAME_FILE, page].map((name) => Bun.file(join(FOLDER, name)).text()));
  const [, title, main] = /^(<title>[^<]+<\/title>)\n([\s\S]+)$/.exec(content ?? "") ?? [];
  if (!frame || !title || !main) throw new Error(`${page} must begin with its title`);
  const script = `<script type="module" src="./browser/${basename(page, ".html")}.ts"></script>`;
  return frame
    .replace("<!-- title -->", title)
    .replace("<!-- script -->", script)
    .replace("<!-- main -->", () => main.trimEnd());
};

/** Returns a page of src/web with its script and its style sheet. */
export const buildPlainPage = async (page: string): Promise<WebFile[]> => {
  const { outputs } = await Bun.build({
    entrypoints: [join(FOLDER, page)],
    publicPath: PREFIX,
    minify: true,
    plugins: [
      {
        name: "frame",
        setup: (build) =>
          void build.onLoad({ filter: /\.html$/ }, async () => ({ contents: await wrapInFrame(page), loader: "html" })),
      },
    ],
  });
  return Promise.all(
    outputs.map(async (output) => {
      const name = basename(output.path);
      const type = (output.type.split(";")[0] ?? "").trim();
      const body = encode(await output.text());
      return name.endsWith(".html") ? { name: page, type, body, isPage: true } : { name, type, body };
    }),
  );
};
