// The images that Dockerfiles of repositories may build on: a shared engine accepts the beginning of an ID as a name.
import { expect, test } from "bun:test";
import { checkDockerfile } from "#src/provisioners/docker/image-name.ts";

const accept = (text: string, args: Record<string, string> = {}): void => checkDockerfile(text, args);
const refuse = (text: string, args: Record<string, string> = {}): void =>
  expect(() => checkDockerfile(text, args), text).toThrow(/ID of an image|built from repositories|variable/);

test("[RW-22] a Dockerfile builds on named images and on its own stages", () => {
  accept("FROM alpine\nRUN echo from=c2\n");
  accept("ARG VERSION=20\nFROM node:${VERSION} AS b\nFROM b\nCOPY --from=0 /x /x\nCOPY --from=B /x /x\n");
  accept(
    "# syntax=docker/dockerfile:1\nFROM --platform=$BUILDPLATFORM golang:1.22 as build\nFROM scratch\nCOPY --from=build /a /a\n",
  );
  accept("ARG BASE\nFROM ${BASE:-debian:12}\nRUN --mount=type=bind,from=alpine:3,target=/m ls /m\n");
  accept("FROM debian@sha256:1f2e\n");
});

test("[RW-22] an ID, an ID prefix, and a repository's image are refused, in any notation", () => {
  for (const image of [
    "c2",
    "C2",
    `sha256:${"1".repeat(64)}`,
    "slipway-repository:1f",
    "docker.io/library/slipway-repository",
  ]) {
    refuse(`FROM ${image}\n`);
    refuse(`from "${image}" AS base\n`);
    refuse(`FROM alpine\nCOPY --chown=1 --from=${image} / /\n`);
    refuse(`FROM alpine\nADD --from="${image}" / /\n`);
    refuse(`FROM alpine\nRUN --mount=type=bind,target=/m,from=${image} ls\n`);
    refuse(`FROM alpine\nONBUILD COPY --from=${image} / /\n`);
    refuse(`ARG A=${image}\nARG B=$A\nFROM \${B}\n`);
    refuse("ARG A=alpine\nFROM $A\n", { A: image });
    refuse(`ARG A\nFROM \${A:-${image}}\n`);
    refuse(`ARG A=x\nFROM \${A:+${image}}\n`);
    refuse(`FROM \\\n# a remark\n\n  ${image}\n`);
    refuse(`# escape=\`\nFROM \`\n ${image}\n`);
  }
  refuse("FROM alpine\nRUN <<EOF\nFROM alpine AS c2\nEOF\nCOPY --from=c2 / /\n");
  refuse('FROM alpine\nRUN echo "<<EOF"\nCOPY --from=c2 / /\n');
  refuse("FROM alpine\nARG A=c2\nCOPY --from=$A / /\n");
  refuse("FROM alpine\nCOPY --from=1 / /\n");
  refuse("ARG A=xc2\nFROM ${A#x}\n");
});

test("[RW-22] a Dockerfile crafted to be slow is refused, or parsed, in a moment", () => {
  accept(`FROM alpine\n${"\n".repeat(200_000)}`);
  const doubling = Array.from({ length: 60 }, (_, at) => `ARG A${at + 1}=$A${at}$A${at}`).join("\n");
  for (const text of [`FROM ${"${A:-".repeat(40_000)}`, `ARG A0=aa\n${doubling}\nFROM $A60`])
    expect(() => accept(text)).toThrow("too long to be looked at");
});
