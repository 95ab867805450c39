// Builds the server's image for two architectures, as an OCI layout in one file, from Debian's packages and the program, without a
// container engine. Content and configuration are the same as in Dockerfile.
import { copyFileSync, existsSync, mkdirSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { TargetSystem } from "#src/build.ts";
import type { ReleaseInputs } from "./inputs.ts";
import { gzipFile, hashFile, packFolder, runTool, UnavailableError } from "./tools.ts";

const MACHINES = { "linux-amd64": "amd64", "linux-arm64": "arm64" } as const satisfies Partial<
  Record<TargetSystem, string>
>;
type Machine = (typeof MACHINES)[keyof typeof MACHINES];

/** Same as in Dockerfile: certificates, and the programs that workspaces of the template `local` need. */
const BASE_PACKAGES = [
  "base-files",
  "bash",
  "coreutils",
  "dash",
  "findutils",
  "grep",
  "gzip",
  "hostname",
  "libc-bin",
  "login",
  "procps",
  "sed",
  "tar",
];
const TOOL_PACKAGES = ["ca-certificates", "git", "openssh-client", "tini"];
/** The machine's list of Debian repositories with their keys. */
const SOURCES_FILE = "/etc/apt/sources.list.d/debian.sources";
const USER_ID = 10_001;
const ACCOUNTS = {
  passwd: [
    "root:x:0:0:root:/root:/bin/bash",
    "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin",
    `slipway:x:${USER_ID}:${USER_ID}::/data:/usr/sbin/nologin`,
  ],
  group: ["root:x:0:", "tty:x:5:", "nogroup:x:65534:", `slipway:x:${USER_ID}:`],
};

const MEDIA = {
  index: "application/vnd.oci.image.index.v1+json",
  manifest: "application/vnd.oci.image.manifest.v1+json",
  config: "application/vnd.oci.image.config.v1+json",
  layer: "application/vnd.oci.image.layer.v1.tar+gzip",
} as const;

type Blob = { mediaType: string; digest: string; size: number };
type Layer = Blob & { diffId: string };

/** A tar for each architecture, used as the first layer in place of Debian's packages. */
export type Bases = Partial<Record<Machine, string>>;

/** Builds `slipway-<version>-image.tar`. Returns its path. Throws UnavailableError without mmdebstrap or a list of Debian repositories. */
export const makeImage = async (inputs: ReleaseInputs, bases: Bases = {}): Promise<string> => {
  const layout = join(inputs.scratch, "image");
  mkdirSync(join(layout, "blobs/sha256"), { recursive: true });
  const manifests: object[] = [];
  const dockerImages: object[] = [];
  for (const [system, architecture] of Object.entries(MACHINES)) {
    const program = inputs.programs[system as TargetSystem];
    if (program === undefined) continue;
    const base = bases[architecture] ?? (await buildDebianBase(inputs, architecture));
    const layers = [
      await addLayer(layout, base),
      await addLayer(layout, await packOwnFiles(inputs, program, architecture)),
    ];
    const config = await addJson(layout, MEDIA.config, toImageConfig(inputs, architecture, layers));
    const layerBlobs = layers.map(({ diffId: _, ...blob }) => blob);
    const manifest = { schemaVersion: 2, mediaType: MEDIA.manifest, config, layers: layerBlobs };
    const blob = await addJson(layout, MEDIA.manifest, manifest);
    manifests.push({ ...withPlatform(blob, architecture) });
    dockerImages.push({
      Config: toBlobPath(config),
      RepoTags: listImageTags(inputs, dockerImages.length),
      Layers: layers.map(toBlobPath),
    });
  }
  if (manifests.length === 0) throw new UnavailableError("no Linux program was built");
  const index = await addJson(layout, MEDIA.index, { schemaVersion: 2, mediaType: MEDIA.index, manifests });
  const namedIndex = { ...index, annotations: { "org.opencontainers.image.ref.name": inputs.version } };
  writeJson(join(layout, "index.json"), { schemaVersion: 2, mediaType: MEDIA.index, manifests: [namedIndex] });
  writeJson(join(layout, "oci-layout"), { imageLayoutVersion: "1.0.0" });
  // `docker load` of older engines reads this file and loads the first image in it.
  writeJson(join(layout, "manifest.json"), dockerImages.slice(0, 1));
  const file = join(inputs.out, `slipway-${inputs.version}-image.tar`);
  await packFolder(layout, file, inputs.epoch);
  return file;
};

const withPlatform = (blob: Blob, architecture: Machine) => ({
  mediaType: blob.mediaType,
  digest: blob.digest,
  size: blob.size,
  platform: { architecture, os: "linux" },
});

/** Returns the tags of an image. Only the first image has one, because `docker load` loads that image. */
const listImageTags = ({ version }: ReleaseInputs, index: number): string[] =>
  index === 0 ? [`slipway:${version}`] : [];

/** Unpacks Debian's packages with mmdebstrap. Their scripts do not run, so the architecture may differ from this machine's. */
const buildDebianBase = async ({ scratch, epoch, env }: ReleaseInputs, architecture: Machine): Promise<string> => {
  if (!existsSync(SOURCES_FILE)) throw new UnavailableError(`there is no ${SOURCES_FILE}`);
  const [, suite] = /^Suites: (\S+)/m.exec(await Bun.file(SOURCES_FILE).text()) ?? [];
  if (suite === undefined) throw new UnavailableError(`${SOURCES_FILE} names no suite`);
  const tar = join(scratch, `debian-${architecture}.tar`);
  await runTool(
    [
      ...["mmdebstrap", "--quiet", "--variant=extract", `--architectures=${architecture}`],
      `--include=${[...BASE_PACKAGES, ...TOOL_PACKAGES].join(",")}`,
      // Same as the installation script of ca-certificates.
      `--extract-hook=mkdir -p "$1/etc/ssl/certs" && cat "$1"/usr/share/ca-certificates/mozilla/*.crt > "$1/etc/ssl/certs/ca-certificates.crt"`,
      `--extract-hook=rm -rf "$1"/usr/share/doc "$1"/usr/share/man "$1"/usr/share/locale "$1"/var/lib/apt "$1"/var/cache`,
      "--skip=output/dev",
      ...[suite, tar, SOURCES_FILE],
    ],
    { env: { ...env, SOURCE_DATE_EPOCH: String(epoch) } },
  );
  return tar;
};

/** Packs the program, its user and its data folder. */
const packOwnFiles = async (inputs: ReleaseInputs, program: string, architecture: Machine): Promise<string> => {
  const folder = join(inputs.scratch, `own-${architecture}`);
  const addFile = (path: string, content: string): void => {
    mkdirSync(join(folder, path, ".."), { recursive: true });
    writeFileSync(join(folder, path), content);
  };
  addFile("etc/passwd", `${ACCOUNTS.passwd.join("\n")}\n`);
  addFile("etc/group", `${ACCOUNTS.group.join("\n")}\n`);
  addFile("usr/local/lib/slipway/installed-by", "image\n");
  addFile("usr/share/doc/slipway/LICENSE", await Bun.file(join(inputs.root, "LICENSE")).text());
  copyFileSync(program, join(folder, "usr/local/lib/slipway/slipway"));
  mkdirSync(join(folder, "usr/local/bin"), { recursive: true });
  await runTool(["ln", "-s", "../lib/slipway/slipway", join(folder, "usr/local/bin/slipway")]);
  const tar = `${folder}.tar`;
  await packFolder(folder, tar, inputs.epoch);
  // The data folder is the only one that root does not own.
  const data = join(inputs.scratch, `data-${architecture}`);
  mkdirSync(join(data, "data"), { recursive: true, mode: 0o700 });
  await runTool([
    ...["tar", "--append", `--file=${tar}`, `--directory=${data}`, `--mtime=@${inputs.epoch}`],
    ...[`--owner=${USER_ID}`, `--group=${USER_ID}`, "--numeric-owner", "--mode=0700", "--format=posix"],
    ...["--pax-option=exthdr.name=%d/PaxHeaders/%f,delete=atime,delete=ctime", "data"],
  ]);
  rmSync(folder, { recursive: true });
  return tar;
};

const toImageConfig = ({ version, epoch }: ReleaseInputs, architecture: Machine, layers: readonly Layer[]) => ({
  created: new Date(epoch * 1000).toISOString(),
  architecture,
  os: "linux",
  config: {
    User: `${USER_ID}:${USER_ID}`,
    WorkingDir: "/data",
    Env: [
      "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
      "SLIPWAY_DATA_DIR=/data",
      "SLIPWAY_ADDRESS=0.0.0.0:7080",
    ],
    Entrypoint: ["/usr/bin/tini", "--", "/usr/local/bin/slipway"],
    Cmd: ["serve"],
    Volumes: { "/data": {} },
    ExposedPorts: { "7080/tcp": {} },
    StopSignal: "SIGTERM",
    Healthcheck: {
      Test: ["CMD", "/usr/local/bin/slipway", "health"],
      Interval: 10_000_000_000,
      Timeout: 5_000_000_000,
      StartPeriod: 10_000_000_000,
      Retries: 3,
    },
    Labels: {
      "org.opencontainers.image.title": "Slipway",
      "org.opencontainers.image.version": version,
      "org.opencontainers.image.licenses": "Apache-2.0",
    },
  },
  rootfs: { type: "layers", diff_ids: layers.map(({ diffId }) => diffId) },
  history: [{ created_by: "Debian packages" }, { created_by: `Slipway ${version}` }],
});

const addLayer = async (layout: string, tar: string): Promise<Layer> => {
  const part = join(layout, "layer.part");
  const diffId = `sha256:${await gzipFile(tar, part)}`;
  const { mediaType, digest, size } = await addBlob(layout, part, MEDIA.layer);
  return { mediaType, digest, size, diffId };
};

const addJson = async (layout: string, mediaType: string, content: object): Promise<Blob> => {
  const part = join(layout, "json.part");
  writeJson(part, content);
  return addBlob(layout, part, mediaType);
};

const addBlob = async (layout: string, part: string, mediaType: string): Promise<Blob> => {
  const sha256 = await hashFile(part);
  const { size } = statSync(part);
  renameSync(part, join(layout, "blobs/sha256", sha256));
  return { mediaType, digest: `sha256:${sha256}`, size };
};

const toBlobPath = ({ digest }: Blob): string => `blobs/${digest.replace(":", "/")}`;

const writeJson = (path: string, content: object): void => writeFileSync(path, JSON.stringify(content));
