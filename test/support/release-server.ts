// A release server in the layout of nodejs.org, dl.google.com, static.rust-lang.org, GitHub and Python's package index: real archives,
// checksums and packages, with small scripts as programs.
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { strToU8, zipSync } from "fflate";
import { sha256 } from "#base/ids.ts";
import { tempDirectory } from "./server.ts";

export type ReleaseServer = Disposable & {
  readonly url: string;
  /** Requested paths, in order. */
  readonly requests: readonly string[];
  /** Replaces a file. */
  put(path: string, body: Uint8Array<ArrayBuffer> | string): void;
};

const ON_ARM = process.arch === "arm64";
const toShellScript = (text: string): string => `#!/bin/sh\n${text}\n`;

/** A shell line that starts an HTTP server on the port in the variable PORT. */
const SERVE = `exec "${process.execPath}" -e 'Bun.serve({ hostname: "127.0.0.1", port: Number(process.env.PORT), fetch: () => new Response("here") })'`;

const FAKE_NODE = `[ "\${1:-}" = --version ] && { echo v24.99.0; exit; }\nexec "${process.execPath}" "$@"`;
const CODE_SERVER = `while [ $# -gt 0 ]; do case $1 in
  --install-extension) echo "$2" >>"$HOME/extensions"; exit ;;
  --bind-addr) export PORT="\${2##*:}" ;;
esac; shift; done
${SERVE}`;
const RUSTUP = `case $1 in
  toolchain) printf '#!/bin/sh\\necho "rustc 1.99.0 ($CHANNEL)"\\n' >"$CARGO_HOME/bin/rustc"; chmod +x "$CARGO_HOME/bin/rustc" ;;
esac`;
const RUSTUP_INIT = `cat >"$CARGO_HOME/bin/rustup" <<'END'
${toShellScript(RUSTUP)}END
chmod +x "$CARGO_HOME/bin/rustup"`;
const UV = `for last in "$@"; do :; done
while [ "$1" != --python ]; do shift; done
mkdir -p "$last/bin"
printf '#!/bin/sh\\necho "Python %s.99"\\n' "$2" >"$last/bin/python"
chmod +x "$last/bin/python"`;
const JUPYTER = `import http.server, sys
def main():
    port = next(int(one.split("=")[1]) for one in sys.argv if one.startswith("--port="))
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"{}")
        def log_message(self, *_):
            pass
    http.server.HTTPServer(("127.0.0.1", port), Handler).serve_forever()
`;

/** Returns a gzipped tar of programs. */
const createTarball = async (files: Readonly<Record<string, string>>): Promise<Uint8Array<ArrayBuffer>> => {
  using folder = tempDirectory();
  for (const [name, text] of Object.entries(files)) {
    const file = join(folder.path, name);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, toShellScript(text));
    chmodSync(file, 0o755);
  }
  const file = join(folder.path, ".tar.gz");
  await Bun.$`tar -czf ${file} ${Object.keys(files)}`.cwd(folder.path).quiet();
  return new Uint8Array(readFileSync(file));
};

/** Returns a Python package with one program. */
const createWheel = (name: string, version: string, program: string, text: string): Uint8Array<ArrayBuffer> => {
  const info = `${name}-${version}.dist-info`;
  const files = {
    [`${name}.py`]: text,
    [`${info}/METADATA`]: `Metadata-Version: 2.1\nName: ${name}\nVersion: ${version}\n`,
    [`${info}/WHEEL`]: "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    [`${info}/entry_points.txt`]: `[console_scripts]\n${program} = ${name}:main\n`,
    [`${info}/RECORD`]: "",
  };
  return new Uint8Array(
    zipSync(Object.fromEntries(Object.entries(files).map(([path, content]) => [path, strToU8(content)]))),
  );
};

type Versions = { readonly codeServer: string; readonly go: string; readonly jupyterlab: string };

/** Serves these releases below /code-server, /go, /node, /python, /rust and /jupyterlab. */
export const serveReleases = async ({ codeServer, go, jupyterlab }: Versions): Promise<ReleaseServer> => {
  const files = new Map<string, Uint8Array<ArrayBuffer> | string>();
  const addWithChecksum = (path: string, body: Uint8Array<ArrayBuffer> | string): void => {
    files.set(path, body);
    files.set(`${path}.sha256`, `${sha256(body)}  ${path.slice(path.lastIndexOf("/") + 1)}\n`);
  };
  const node = `node-v24.99.0-linux-${ON_ARM ? "arm64" : "x64"}`;
  const nodeArchive = await createTarball({ [`${node}/bin/node`]: FAKE_NODE, [`${node}/bin/npm`]: ":" });
  files.set(`/node/latest-v24.x/${node}.tar.gz`, nodeArchive);
  files.set(
    "/node/latest-v24.x/SHASUMS256.txt",
    `${sha256("")}  node-v24.99.0.pkg\n${sha256(nodeArchive)}  ${node}.tar.gz\n`,
  );
  const arch = ON_ARM ? "arm64" : "amd64";
  addWithChecksum(
    `/go/go${go}.linux-${arch}.tar.gz`,
    await createTarball({ "go/bin/go": `echo "go version go${go} linux/${arch}"` }),
  );
  const machine = ON_ARM ? "aarch64" : "x86_64";
  addWithChecksum(`/rust/rustup/dist/${machine}-unknown-linux-gnu/rustup-init`, toShellScript(RUSTUP_INIT));
  const uv = `uv-${machine}-unknown-linux-gnu`;
  addWithChecksum(`/python/${uv}.tar.gz`, await createTarball({ [`${uv}/uv`]: UV }));
  const code = `code-server-${codeServer}-linux-${arch}`;
  files.set(
    `/code-server/v${codeServer}/${code}.tar.gz`,
    await createTarball({ [`${code}/bin/code-server`]: CODE_SERVER }),
  );
  const file = `jupyterlab-${jupyterlab}-py3-none-any.whl`;
  files.set("/jupyterlab/jupyterlab/", `<!doctype html><a href="../${file}">${file}</a>`);
  files.set(`/jupyterlab/${file}`, createWheel("jupyterlab", jupyterlab, "jupyter-lab", JUPYTER));
  const requests: string[] = [];
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch: ({ url }) => {
      const { pathname } = new URL(url);
      requests.push(pathname);
      const body = files.get(pathname);
      if (body === undefined) return new Response("not found", { status: 404 });
      const type = pathname.endsWith("/") ? "text/html" : "application/octet-stream";
      return new Response(body, { headers: { "content-type": type } });
    },
  });
  return {
    url: server.url.origin,
    requests,
    put: (path, body) => void files.set(path, body),
    [Symbol.dispose]: () => void server.stop(true),
  };
};
