// The images that the Dockerfiles of repositories may build on. An engine accepts a prefix of an image ID as a name. On a shared engine, that
// could be another person's image, so a name that could be such a prefix is refused.
import { expect, test } from "bun:test";
import type { Base } from "#src/provisioners/docker/bases.ts";
import { checkDockerfile, checkTriggers } from "#src/provisioners/docker/image-name.ts";
import { formatPlatform, isForPlatform, type Platform, parsePlatform } from "#src/provisioners/docker/platform.ts";

const accept = (text: string, args: Record<string, string> = {}): Base[] => checkDockerfile(text, args);
const listImages = (text: string, target?: string): string[] =>
  checkDockerfile(text, {}, undefined, target).map(({ image }) => image);
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

test("[RW-22] an ID, an ID prefix and a repository's image are refused in any notation", () => {
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
  refuse("FROM alpine\nARG A=c2\nCOPY --from=$A / /\n");
  refuse("FROM alpine\nCOPY --from=1 / /\n");
  refuse("ARG A=xc2\nFROM ${A#x}\n");
});

test("[RW-22] an ID is refused even if escapes, quotes or line continuations hide it", () => {
  const afterFrom = (line: string): string => `FROM alpine\n${line}\n`;
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
    afterFrom('COPY --"from"=c2 / /'),
    afterFrom('COPY --from="c2" / /'),
    afterFrom("COPY --f\\rom=c2 / /"),
    afterFrom("COPY --fr\\\nom=c2 / /"),
    afterFrom("COPY \\\n# remark\n\n --from=c2 / /"),
    afterFrom("RUN a \\\n  # remark\nCOPY --from=c2 / /"),
    afterFrom("COPY --chown=\u00e0--from=c2 / /"),
    afterFrom('ONBUILD COPY --"from"=c2 / /'),
    afterFrom("ONBUILD \\\n COPY --from=c2 / /"),
    "FROM alpine AS C2\nFROM alpine\nCOPY --from=C3 / /\n",
    "FROM alpine\nCOPY --from=c2 / /\nFROM alpine AS c2\n",
  ])
    refuse(text);
});

test("[RW-22] syntax that engines parse differently is refused, and the error names the line and gives advice", () => {
  for (const [text, message] of [
    ["FROM alpine\rFROM c2\n", "U+000D in line 1"],
    ["FROM alpine\n# x\u2028COPY --from=c2 / /\n", "U+2028 in line 2"],
    ["FROM alpine\nRUN true \\\n\uFEFF\nCOPY --from=c2 / /loot\n", "U+FEFF in line 3"],
    ["FROM alpine\nONBUILD \uFEFFCOPY --from=c2 / /loot\n", "U+FEFF in line 2"],
    ["FROM alpine\n# escape=`\nCOPY `\n--from=c2 / /\n", "# escape=` in line 2"],
    ["FROM alpine\nRUN a \\\\\nCOPY --from=c2 / /\n", "ID of an image"],
    ["FROM alpine\nRUN a \\\\\\\nCOPY --from=c2 / /\n", "ID of an image"],
    ["FROM alpine\nCOPY --fr\\\\\nom=c2 / /\n", "ID of an image"],
    ["FROM alpine\nONBU\u0130LD COPY --from=c2 / /\n", "Write it in ASCII letters"],
    ["FROM alpine\nONBUILD ONBUILD COPY --from=c2 / /\n", "ONBUILD ONBUILD in line 2"],
  ] as const)
    expect(() => accept(text), text).toThrow(message);
  expect(() => accept("Dockerfile.real")).toThrow("has no FROM");
  expect(() => accept('FROM alpine\nCOPY --chown="a\\"b" / /\n')).toThrow("quotes inside");
});

test("[RW-22] a here-document is refused in every notation that an engine accepts", () => {
  for (const start of [
    "RUN <<'#'",
    'RUN <<""',
    "RUN << 'E\\'",
    "RUN <<'E\\' cat",
    "RUN <<A <<B",
    "RUN <<-EOF",
    "RUN <<EOF-x",
    "RUN << A",
    "RUN 3<<A",
    "RUN \\3<<A",
    "RUN x1<<A <<EOF",
    "RUN a\"b 'c\" <<'#' \"d' e\"",
    "RUN \\\" <<'#' \\\"",
    "RUN echo 'a' <<A 'b'",
    "RUN ${X:-}<<A",
    "RUN <${X:-}<A",
    "RUN $X<<A",
    "RUN \\<<A",
    "RUN <\\<A",
    'RUN "${X:-"<<A"}"',
    "RUN ${X:-a <<A}",
    "RUN echo $((1 << 20))",
    "RUN echo it's <<A",
    "RUN <\\\n<A",
    "run --mount=type=cache,target=/c <<A",
    "COPY <<A /a",
    "ADD --chown=1 <<A /a",
    "ONBUILD RUN <<A",
  ])
    expect(() => accept(`FROM alpine\n${start}\nx\n`), start).toThrow("a here-document (<");
  expect(() => accept("FROM alpine\n\nRUN \\\n  cat <<EOF\n")).toThrow(
    "The Dockerfile has a here-document (<<EOF) in line 3, whose lines the Docker Engine's build leaves out. Join the commands with &&",
  );
});

test("[RW-22] an ordinary Dockerfile is accepted", () => {
  // The stage names are hexadecimal. Without the stage, such a name would be a prefix of an image ID.
  const ordinary = `# syntax=docker/dockerfile:1
# escape=\\
ARG NODE=22
FROM --platform=$BUILDPLATFORM node:\${NODE:-20} AS Cafe
WORKDIR /src
COPY --chown=node:node package*.json ./
COPY --chown="node:node" --chmod=755 ["a b", "/c/"]
RUN --mount=type=cache,target=/root/.npm --mount=type=bind,from=cafe,target=/m npm ci

FROM cafe AS ada
RUN echo $((1<<20)) && bash -c 'cat <<<foo' && cat <<<"$X" && foo "<<EOF-1" "\${X:-1}"
RUN apt-get update \\
    # don't keep the lists
    && apt-get install -y git \\

    && echo "a \${B} << b" 'std::cout << "x"' "it's" && printf "\\n" && x=$((1<<2))
RUN ["sh", "-c", "cat <<EOF"]
RUN echo 'a\\\\' && \\
    true
LABEL note="1 << 2"
CMD cat << EOF

FROM cafe
COPY --from=ada /src/dist /app
ADD --chown=node app.tar.gz target/\${JAR} ./$X /app/
ADD ["a b", "/c/"]
HEALTHCHECK CMD curl -f http://localhost/
ENTRYPOINT ["node", "/app"]
`;
  for (const text of [ordinary, ordinary.replaceAll("\n", "\r\n"), `\uFEFF${ordinary}`]) accept(text);
  // The engine reads a flag after an ideographic space as a file name.
  accept("FROM alpine\nCOPY \u3000--from=c2 / /\n");
  accept("# escape=`\r\nFROM debian:13 AS cafe\r\nRUN dir C:\\\r\nFROM cafe\r\n");
});

test("[RW-22] a stage whose name an engine case-folds to the target's is refused", () => {
  const text = (name: string): string => `FROM a:1 AS div\nFROM evil:1 AS ${name}\n`;
  expect(listImages(text("DIV"), "div")).toEqual(["a:1", "evil:1"]);
  for (const name of ["d\u0130v", "DIV\u017f"])
    expect(() => listImages(text(name), "div")).toThrow("has the stage name");
});

test("[RW-27] ADD may not download, because the engine would reach the networks of its machine", () => {
  const url = "http://127.0.0.1:1/metrics";
  const refused = [
    [`ADD ${url} /m`, "Download in a RUN instruction"],
    [`ADD \\\n${url} /m`, "Download in a RUN instruction"],
    [`ADD ["${url}", "/m"]`, "Download in a RUN instruction"],
    ['ADD ["http\\u003a//127.0.0.1/", "/m"]', "Download in a RUN instruction"],
    [`ADD "${url}" /m`, "Download in a RUN instruction"],
    ["ADD ht\\tp://127.0.0.1/ /m", "Download in a RUN instruction"],
    [`ADD a ${url} /m/`, "Download in a RUN instruction"],
    [`ADD --chown=1 ${url} /m`, "Download in a RUN instruction"],
    [`ONBUILD ADD ${url} /m`, "Download in a RUN instruction"],
    ["ADD git@example.com:a/b.git /m", "Download in a RUN instruction"],
    ["ADD $U /m", "Use COPY"],
    ["ADD $U/a /m", "Use COPY"],
    ["ADD http:$U/a /m", "Download in a RUN instruction"],
    ["ADD ht$U/a /m", "Use COPY"],
    ["ADD h\\ttp:/$U /m", "Use COPY"],
  ] as const;
  for (const [line, advice] of refused)
    expect(() => accept(`FROM alpine\nARG U=${url}\n${line}\n`), line).toThrow(advice);
  expect(() => accept("FROM alpine\nRUN --network=host ls\n")).toThrow("a network of their own");
});

test("[RW-27] ONBUILD instructions of a base image obey the rules of a Dockerfile, and the error names the base", () => {
  const check = (text: string) => () => checkTriggers("evil:1", [text]);
  for (const line of ["COPY --from=c2 / /loot", 'COPY --"from"=c2 / /', "ADD http://127.0.0.1/ /m", "ADD $U /m"])
    expect(check(line)).toThrow(`The image evil:1 has the instruction "ONBUILD ${line}".`);
  for (const [text, message] of [
    ["# x\nCOPY --from=c2 / /loot", "ID of an image"],
    ["C\\\nOPY --from=c2 / /loot", "ID of an image"],
    ["# escape=`\nADD htt`\np://169.254.169.254/ /m", "Download in a RUN instruction"],
    ["RUN true\nRUN true", "It has several instructions"],
    ["RUN <<A\nx\nA", "It has a here-document (<<A) in line 1"],
    ["\uFEFFCOPY --from=c2 / /loot", "ID of an image"],
  ] as const)
    expect(check(text), text).toThrow(message);
  checkTriggers("node:20-onbuild", [
    "ARG NODE_ENV",
    "COPY package.json /app/",
    "RUN npm install && \\\n npm cache clean",
  ]);
  expect(listImages("ARG A=a:1\nFROM $A AS one\nFROM one\nFROM scratch\nFROM b:2 as two\n")).toEqual(["a:1", "b:2"]);
});

test("[RW-30] a Dockerfile cannot set, in any notation, the labels by which the server finds a workspace's objects", () => {
  for (const label of [
    "slipway.workspace_id=1",
    "slipway.workspace_id 1",
    "Slipway.run=1",
    '"slipway.run"=1',
    "'slipway.run' 1",
    'a=b slip"way".run=1',
    "a=b \\slipway.run=1",
    'a="b c" \\\n  slipway.run="1"',
    "a=`\\`` slipway.run=1",
  ]) {
    expect(() => accept(`FROM alpine\nLABEL ${label}\n`), label).toThrow("set by the server. Choose another name.");
    expect(() => accept(`FROM alpine\nONBUILD LABEL ${label}\n`), label).toThrow("set by the server");
  }
  for (const label of ["$A=b", 'a=b "${A%% *}"=c', "a=b ${A}way.run=c", "$A b"])
    expect(() => accept(`FROM alpine\nARG A=slipway.run\nLABEL ${label}\n`), label).toThrow(
      "whose name has a variable. Write the name.",
    );
  expect(() => accept("# escape=`\nFROM alpine\nLABEL a=b` slipway.run=1 `slipway.run=2\n")).toThrow(
    "set by the server",
  );
  expect(() => checkTriggers("evil:1", ["LABEL slipway.run=1"])).toThrow(
    'has the instruction "ONBUILD LABEL slipway.run=1"',
  );
  accept(
    'FROM alpine\nLABEL version=$V note="slipway.run=1 $A=b" org.example.slipway.run=1\nLABEL note slipway.run=$V\n',
  );
});

test("[RW-27] a build needs only the bases of the stages up to its target", () => {
  const text = "FROM a:1 AS base\nFROM b:2 AS Dev\nFROM base AS test\nFROM $PROD AS prod\nFROM runtime-${TARGETARCH}\n";
  expect(listImages(text, "dev")).toEqual(["a:1", "b:2"]);
  expect(listImages(text, "BASE")).toEqual(["a:1"]);
  expect(listImages(text, "2")).toEqual(["a:1", "b:2"]);
  expect(() => listImages(text, "deb")).toThrow('The Dockerfile has no stage "deb".');
  expect(() => listImages(text, "9")).toThrow('The Dockerfile has no stage "9".');
  expect(() => listImages(text)).toThrow(
    "The image $PROD of the Dockerfile has no value. Give ARG PROD a default above the first FROM.",
  );
  expect(() => listImages("FROM a:1 AS a\nFROM c2 AS prod\n", "a")).toThrow("ID of an image");
  expect(listImages("FROM a:1 AS dev\nFROM b:2 AS dev\n", "dev")).toEqual(["a:1", "b:2"]);
});

test("[RW-27] a base has the platform of its FROM instruction, parsed as engines do", () => {
  const readPlatforms = (text: string): string[] =>
    accept(`ARG A=arm64\nFROM --platform=${text} a:1\n`).map(({ platform }) =>
      platform ? formatPlatform(platform) : "",
    );
  for (const [text, platform = text] of [
    ["linux/arm64"],
    ["linux/$A", "linux/arm64"],
    ['"linux/arm64/v8"', "linux/arm64"],
    ["Linux/aarch64", "linux/arm64"],
    ["amd64", "linux/amd64"],
    ["linux/arm", "linux/arm/v7"],
    ["linux/arm/6", "linux/arm/v6"],
    ["$BUILDPLATFORM", ""],
    ["linux/$TARGETARCH", ""],
  ] as [string, string?][])
    expect(readPlatforms(text), text).toEqual([platform]);
  for (const text of ["linux", "linux/arm64/v8/x", "linux/a@b", "a.b/c"])
    expect(() => readPlatforms(text), text).toThrow(
      `--platform=${text}. Write the operating system and the architecture`,
    );
  expect(() => readPlatforms("linux/${A#a}")).toThrow("form that cannot be followed");
  const arm = parsePlatform("linux/arm/v6") as Platform;
  const variants = [undefined, "v6", "v7"].map((Variant) => isForPlatform({ Architecture: "arm", Variant }, arm));
  expect(variants).toEqual([true, true, false]);
  expect(isForPlatform({ Os: "windows", Architecture: "arm", Variant: "v6" }, arm)).toBe(false);
  expect(isForPlatform({ Architecture: "arm64", Variant: "v8" }, parsePlatform("arm64") as Platform)).toBe(true);
});

test("[RW-22] a Dockerfile crafted to be slow is refused or parsed within seconds", () => {
  const startedAt = performance.now();
  const doublingArgs = Array.from({ length: 60 }, (_, index) => `ARG A${index + 1}=$A${index}$A${index}`).join("\n");
  const long = "x".repeat(65_535);
  for (const [text, message] of [
    [`FROM ${"${A:-".repeat(10_000)}`, "instruction that is too long"],
    [`ARG A0=aa\n${doublingArgs}\nFROM $A60`, "instruction that is too long"],
    [`ARG A=\${A:-${"${A:-".repeat(700)}\n`.repeat(70), "in a form that cannot be followed"],
    [`FROM alpine\nRUN ${long}`, "more than 65534 bytes in line 2"],
    [`FROM alpine\nRUN ${`\\\n${long.slice(1)}`.repeat(5)}`, "more than 256 KiB"],
    [`FROM alpine\n${"ONBUILD ".repeat(8_000)}`, "ONBUILD ONBUILD"],
    [`FROM alpine\nRUN ${"<< ".repeat(20_000)}`, "here-document"],
    [`FROM alpine\nRUN x<<y${"${".repeat(30_000)}`, "here-document"],
  ] as const)
    expect(() => accept(text)).toThrow(message);
  for (const part of [" ", "<", "<\\", "<<a<", "$A", '\\"', "''", "1", "a", "${a}", "$"]) {
    const line = part.repeat(64_000 / part.length);
    accept(`FROM alpine\nRUN x<<y${`x${line} \\\nx \\ \n`.repeat(3)}true\n`);
    accept(`FROM alpine\nLABEL note=${line}\n`);
  }
  accept(`ARG ${"a ".repeat(32_000)}\nARG ${'A="'.repeat(20_000)}\nFROM alpine\n${"\n".repeat(100_000)}`);
  for (const triggers of [Array.from({ length: 101 }, () => "RUN true"), ["#".repeat(65_537)]])
    expect(() => checkTriggers("evil:1", triggers)).toThrow("more than 100 ONBUILD instructions, or more than 64 KiB");
  expect(performance.now() - startedAt).toBeLessThan(5_000);
});
