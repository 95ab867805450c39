// Search words: known stems of the published English stemmer, and how a text is split into words.
import { expect, test } from "bun:test";
import { stemWord } from "#base/text/stemmer.ts";
import { listStems, splitWords } from "#base/text/words.ts";

const PAIRS =
  "consign:consign consigned:consign consigning:consign consignment:consign consist:consist consistency:consist consistently:consist " +
  "consolatory:consolatori consolidating:consolid conspicuous:conspicu conspiracy:conspiraci knackeries:knackeri knaves:knave " +
  "knavish:knavish kneaded:knead kneeling:kneel knightly:knight knots:knot generously:generous generate:generat general:general " +
  "communication:communic deployments:deploy deploys:deploy deployed:deploy deploy:deploy quickly:quick running:run hopping:hop " +
  "hoping:hope ties:tie cries:cri by:by say:say happy:happi gas:gas gaps:gap kiwis:kiwi this:this luxuriated:luxuri sensibly:sensibl " +
  "national:nation organization:organ skies:sky caresses:caress relational:relat bedding:bed queries:queri query:queri analogy:analog " +
  "youth:youth boys:boy agreed:agre feed:feed proceeding:proceed dying:die";

test("[FS-2] words are reduced to the stems of the published algorithm", () => {
  for (const pair of PAIRS.split(" ")) {
    const [word = "", stem = ""] = pair.split(":");
    expect([word, stemWord(word)]).toEqual([word, stem]);
  }
  expect(stemWord("größen")).toBe("größen");
  expect(stemWord("v2s")).toBe("v2s");
});

test("[FS-2] a text becomes lowercase words without stop words; very long words and texts are truncated", () => {
  expect(splitWords('The "Über-Test" of my_function(x1)!')).toEqual([
    "the",
    "über",
    "test",
    "of",
    "my",
    "function",
    "x1",
  ]);
  expect(listStems("The tests are running, don't worry")).toEqual(["test", "run", "worri"]);
  expect(listStems("!?* ()")).toEqual([]);
  expect(splitWords("a".repeat(5_000))[0]?.length).toBe(128);
  expect(listStems("word ".repeat(50_000)).length).toBe(10_000);
});
