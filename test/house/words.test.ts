// The code follows docs/glossary.md: retired words are not used in names.
import { expect, test } from "bun:test";
import { readPage } from "#test/support/documents.ts";

/** The retired words as they would appear in names of types, classes, functions and files. */
const RETIRED: Readonly<Record<string, RegExp>> = {
  "`...Parts`": /\b(?:type|interface|class) \w+Parts\b/,
  "`house`": /\b\w*[Hh]ouse\b(?!\w)/,
  "`Wish`":
    /\b(?:type|interface|class) \w*Wish(?:ed)?\b|\b(?:const|let) \w*(?:[wW]ish(?:ed|es)?|WISH\w*)\b|[(,] wish(?:ed|es)?\b/,
  "`birth`": /\b(?:const|function|class|type) \w*(?:[Bb]irth|[Nn]ewborn)\w*/,
  "`obey`": /\bobey\w*\b/,
  "`Episode`": /\b(?:[Ee]pisodes?|EPISODE\w*)\b/,
  "`Together`": /\b(?:type|interface|class|const) \w*(?:Together|TOGETHER)\b|#\w*Together\b/,
  "`show...` of rows": /\b(?:const|function) show[A-Z]\w* = \(\w+: \w*Row\b/,
  "`Silences`":
    /\b(?:type|interface|class) \w*(?:Silences|Beats|Rounds)\b|\b(?:const|readonly) #?(?:silences|beats|rounds)\b/,
  "`told...`": /\b(?:const|let|function|type|interface|class|get) (?:\w*Told|told|TOLD)\w*|#\w*[tT]old\b/,
  "`aside`": /^(?!src\/web\/)[^\n]*(?:aside\/|\n[\s\S]*\b(?:const|function|class|type) \w*(?:[aA]side|ASIDE)\b)/,
  "`place...`": /\b(?:const|function) place(?:Of|For|At)(?:App|Agent|Chat|Workspace)\w*/,
  "`stranger`": /\b(?:const|function|class|type) \w*[sS]trangers?\b|#\w*[sS]trangers?\b/,
};

const files = ["src", "actors", "db"].flatMap((folder) =>
  [...new Bun.Glob(`${folder}/**/*.{ts,tsx}`).scanSync({ cwd: `${import.meta.dir}/../..` })].filter(
    (file) => !file.startsWith("src/wire/gen/"),
  ),
);

test("[RP-16] the code uses none of the glossary's retired words, and the glossary lists all of them", () => {
  const glossary = readPage("docs/glossary.md");
  const found = files.flatMap((file) => {
    const text = readPage(file);
    return Object.entries(RETIRED).flatMap(([word, names]) =>
      names.test(`${file}\n${text}`) ? [`${file}: ${word}`] : [],
    );
  });
  expect(found).toEqual([]);
  expect(Object.keys(RETIRED).filter((word) => !glossary.includes(`| ${word}`))).toEqual([]);
});
