// The images that Dockerfiles of repositories may build on: a shared engine accepts the beginning of an ID as a name.
import { expect, test } from "bun:test";
import { checkDockerfile, checkTriggers } from "#src/provisioners/docker/image-name.ts";

const accept = (text: string, args: Record<string, string> = {}): string[] => checkDockerfile(text, args);
const refuse = (text: string, args: Record<string, string> = {}): void =>
  expect(() => checkDockerfile(text, args), text).toThrow(/ID of an image|built from repositories|variable|in a form/);

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

test("[RW-22] an ID that the engine reads from escapes, quotes and continued words is refused", () => {
  const copies = (line: string): string => `FROM alpine\n${line}\n`;
  for (const text of [
    "FROM c\\2\n",
    "FR\\\nOM c2\n",
    "FROM \\\nc\\\n2\n",
    "FROM $1c2\n",
    'ARG A="c"2\nFROM $A\n',
    "ARG A=c\\2\nFROM $A\n",
    "FROM 'c'2\n",
    "FROM c''2\n",
    'FROM "c""2"\n',
    "\uFEFFFROM c2\n",
    "\u00a0FROM c2\n",
    "FROM localhost/slipway-repository:1f\n",
    copies('COPY --"from"=c2 / /'),
    copies('COPY --from="c2" / /'),
    copies("COPY --f\\rom=c2 / /"),
    copies("COPY --fr\\\nom=c2 / /"),
    copies("COPY \\\n# remark\n\n --from=c2 / /"),
    copies("RUN a \\\n  # remark\nCOPY --from=c2 / /"),
    copies("COPY --chown=\u00e0--from=c2 / /"),
    copies('ONBUILD COPY --"from"=c2 / /'),
    copies("ONBUILD \\\n COPY --from=c2 / /"),
    "FROM alpine AS C2\nFROM alpine\nCOPY --from=C3 / /\n",
    "FROM alpine\nCOPY --from=c2 / /\nFROM alpine AS c2\n",
  ])
    refuse(text);
});

test("[RW-22] what engines read differently is refused", () => {
  for (const text of [
    "FROM alpine\rFROM c2\n",
    "FROM alpine\n# x\u2028COPY --from=c2 / /\n",
    "FROM alpine\n# escape=`\nCOPY `\n--from=c2 / /\n",
    "FROM alpine\nRUN a \\\\\nCOPY --from=c2 / /\n",
    "FROM alpine\nRUN <<'E\\' cat\nE\\\nCOPY --from=c2 / /\n",
    "FROM alpine\nONBU\u0130LD COPY --from=c2 / /\n",
  ])
    expect(() => accept(text), text).toThrow("cannot be checked");
  expect(() => accept("Dockerfile.real")).toThrow("has no FROM");
  expect(() => accept('FROM alpine\nCOPY --chown="a\\"b" / /\n')).toThrow("quotes inside");
  accept('FROM alpine\nCOPY --chown="node:node" a /a\nRUN printf "\\n" && \\\n    # indented\n    ls\n');
});

test("[RW-27] ADD downloads nothing: the engine would reach the networks of its machine", () => {
  const url = "http://127.0.0.1:1/metrics";
  for (const line of [
    `ADD ${url} /m`,
    `ADD \\\n${url} /m`,
    `ADD ["${url}", "/m"]`,
    'ADD ["http\\u003a//127.0.0.1/", "/m"]',
    `ADD "${url}" /m`,
    "ADD ht\\tp://127.0.0.1/ /m",
    "ADD $U /m",
    `ADD a ${url} /m/`,
    `ADD --chown=1 ${url} /m`,
    `ONBUILD ADD ${url} /m`,
    "ADD git@example.com:a/b.git /m",
  ])
    expect(() => accept(`FROM alpine\nARG U=${url}\n${line}\n`), line).toThrow("Download in a RUN instruction");
  accept('FROM alpine\nADD app.tar.gz $HOME/\nADD ["a b", "/c/"]\n');
  expect(() => accept("FROM alpine\nRUN --network=host ls\n")).toThrow("a network of their own");
});

test("[RW-27] a base image may not do by ONBUILD what a Dockerfile may not, and bases are named", () => {
  for (const line of ["COPY --from=c2 / /loot", 'COPY --"from"=c2 / /', "ADD http://127.0.0.1/ /m", "ADD $U /m"])
    expect(() => checkTriggers("evil:1", [line])).toThrow(`The image evil:1 has the instruction "ONBUILD ${line}".`);
  checkTriggers("node:20-onbuild", ["ARG NODE_ENV", "COPY package.json /app/", "RUN npm install"]);
  expect(checkDockerfile("ARG A=a:1\nFROM $A AS one\nFROM one\nFROM scratch\nFROM b:2 as two\n", {})).toEqual([
    "a:1",
    "b:2",
  ]);
});

test("[RW-22] a Dockerfile crafted to be slow is refused, or parsed, in a moment", () => {
  accept(`FROM alpine\n${"\n".repeat(200_000)}`);
  const doubling = Array.from({ length: 60 }, (_, at) => `ARG A${at + 1}=$A${at}$A${at}`).join("\n");
  for (const text of [`FROM ${"${A:-".repeat(40_000)}`, `ARG A0=aa\n${doubling}\nFROM $A60`])
    expect(() => accept(text)).toThrow("instruction that is too long");
});
