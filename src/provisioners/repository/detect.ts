// Finds the file in a repository that configures its workspaces: devcontainer.json, Dockerfile, .gitpod.yml or devfile.yaml, in this order.
// Without such a file, chooses an image for the repository's programming language. Uses only the list of paths. Pure.
import type { RepositoryPlan } from "#schema/templates/repository.ts";

export type Detection = Pick<RepositoryPlan, "source" | "choices" | "hints"> & {
  /** The file to read; undefined if the language determines the image. */
  readonly file?: string;
  readonly image: string;
};

/** Images by language, with fixed versions so that workspaces are reproducible. */
const IMAGES = {
  base: "mcr.microsoft.com/devcontainers/base:2.1.13-trixie",
  cpp: "mcr.microsoft.com/devcontainers/cpp:debian-12",
  dotnet: "mcr.microsoft.com/devcontainers/dotnet:9.0",
  go: "mcr.microsoft.com/devcontainers/go:1.25",
  java: "mcr.microsoft.com/devcontainers/java:21",
  javascript: "mcr.microsoft.com/devcontainers/javascript-node:22",
  php: "mcr.microsoft.com/devcontainers/php:8.4",
  python: "mcr.microsoft.com/devcontainers/python:3.13",
  ruby: "mcr.microsoft.com/devcontainers/ruby:3.4",
  rust: "mcr.microsoft.com/devcontainers/rust:1",
  typescript: "mcr.microsoft.com/devcontainers/typescript-node:22",
} as const;

/** Returns true if the image is one of Slipway's defaults. */
export const isDefaultImage = (image: string): boolean => Object.values<string>(IMAGES).includes(image);

/** Files that indicate a project's language. The first existing file determines it. */
const LANGUAGES: readonly (readonly [RegExp, keyof typeof IMAGES])[] = [
  [/^go\.mod$/, "go"],
  [/^Cargo\.toml$/, "rust"],
  [/^tsconfig\.json$/, "typescript"],
  [/^(?:pom\.xml|build\.gradle(?:\.kts)?)$/, "java"],
  [/^(?:composer\.json)$/, "php"],
  [/^Gemfile$/, "ruby"],
  [/^(?:pyproject\.toml|requirements\.txt|setup\.py|Pipfile)$/, "python"],
  [/^[^/]+\.(?:sln|slnx|csproj|fsproj)$/, "dotnet"],
  [/^package\.json$/, "javascript"],
  [/^(?:CMakeLists\.txt|meson\.build|configure\.ac)$/, "cpp"],
];

/** Languages by file extension, for projects without any of the files above. */
const LANGUAGES_BY_EXTENSION: Readonly<Record<string, keyof typeof IMAGES>> = {
  c: "cpp",
  cc: "cpp",
  cpp: "cpp",
  cs: "dotnet",
  go: "go",
  java: "java",
  js: "javascript",
  kt: "java",
  php: "php",
  py: "python",
  rb: "ruby",
  rs: "rust",
  ts: "typescript",
};

const HINTS: readonly (readonly [string, string])[] = [
  ["flake.nix", "flake.nix describes the tools of this project for Nix. Run “nix develop” where Nix is installed."],
  [".tool-versions", ".tool-versions names the versions of tools. Run “mise install” or “asdf install” to get them."],
  ["mise.toml", "mise.toml names the versions of tools. Run “mise install” to get them."],
  [".mise.toml", ".mise.toml names the versions of tools. Run “mise install” to get them."],
  ["devbox.json", "devbox.json describes the tools of this project. Run “devbox shell” where Devbox is installed."],
];

const MAX_CHOICES = 64;

/**
 * Detects the configuration of a repository. Looks for each kind of file first in `folder`, then in the root. `chosen`: the path of the
 * devcontainer.json to read, if it exists.
 */
export const detect = (files: readonly string[], folder = "", chosen?: string): Detection => {
  const prefixes = folder === "" ? [""] : [`${folder}/`, ""];
  const existing = new Set(files);
  const image = IMAGES[detectLanguage(files, prefixes)];
  const hints = HINTS.flatMap(([name, hint]) => (prefixes.some((prefix) => existing.has(prefix + name)) ? [hint] : []));
  for (const prefix of prefixes) {
    const choices = listDevcontainers(files, prefix);
    const file = chosen !== undefined && choices.includes(chosen) ? chosen : choices[0];
    if (file !== undefined)
      return { source: "devcontainer", file, choices: choices.slice(0, MAX_CHOICES), image, hints };
  }
  const others = [
    ["dockerfile", ["Dockerfile", "Containerfile"]],
    ["gitpod", [".gitpod.yml", ".gitpod.yaml"]],
    ["devfile", ["devfile.yaml", ".devfile.yaml", "devfile.yml", ".devfile.yml"]],
  ] as const;
  for (const [source, names] of others) {
    const file = prefixes.flatMap((prefix) => names.map((name) => prefix + name)).find((path) => existing.has(path));
    if (file !== undefined) return { source, file, choices: [], image, hints };
  }
  return { source: "language", choices: [], image, hints };
};

/** Returns the paths of all devcontainer.json files of a folder, in order of preference. */
const listDevcontainers = (files: readonly string[], prefix: string): string[] => {
  const defaults = [`${prefix}.devcontainer/devcontainer.json`, `${prefix}.devcontainer.json`];
  const existing = new Set(files);
  const nested = files.filter((path) => {
    const pathParts = path.startsWith(`${prefix}.devcontainer/`) ? path.slice(prefix.length).split("/") : [];
    return pathParts.length === 3 && pathParts[2] === "devcontainer.json";
  });
  return [...defaults.filter((path) => existing.has(path)), ...nested.sort()];
};

const detectLanguage = (files: readonly string[], prefixes: readonly string[]): keyof typeof IMAGES => {
  for (const prefix of prefixes) {
    const names = files.filter((path) => path.startsWith(prefix)).map((path) => path.slice(prefix.length));
    for (const [pattern, language] of LANGUAGES) {
      if (names.some((name) => !name.includes("/") && pattern.test(name))) return language;
    }
  }
  const counts = new Map<keyof typeof IMAGES, number>();
  for (const path of files) {
    const language = LANGUAGES_BY_EXTENSION[/\.([a-z]+)$/.exec(path)?.[1] ?? ""];
    if (language) counts.set(language, (counts.get(language) ?? 0) + 1);
  }
  const [mostFrequent] = [...counts].sort(([, a], [, b]) => b - a);
  return mostFrequent?.[0] ?? "base";
};
