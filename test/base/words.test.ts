// Stems and words of searches: known pairs of the published English stemmer, and what a text falls into.
import { expect, test } from "bun:test";
import { stemOf } from "#base/stem.ts";
import { stemsOf, wordsOf } from "#base/words.ts";

const PAIRS =
  "consign:consign consigned:consign consigning:consign consignment:consign consist:consist consistency:consist consistently:consist " +
  "consolatory:consolatori consolidating:consolid conspicuous:conspicu conspiracy:conspiraci knackeries:knackeri knaves:knave " +
  "knavish:knavish kneaded:knead kneeling:kneel knightly:knight knots:knot generously:generous generate:generat general:general " +
  "communication:communic deployments:deploy deploys:deploy deployed:deploy deploy:deploy quickly:quick running:run hopping:hop " +
  "hoping:hope ties:tie cries:cri by:by say:say happy:happi gas:gas gaps:gap kiwis:kiwi this:this luxuriated:luxuri sensibly:sensibl " +
  "national:nation organization:organ skies:sky caresses:caress relational:relat bedding:bed queries:queri query:queri analogy:analog " +
  "youth:youth boys:boy agreed:agre feed:feed proceeding:proceed dying:die";

test("[FS-2] words come down to the stems that the published algorithm gives them", () => {
  for (const pair of PAIRS.split(" ")) {
    const [word = "", stem = ""] = pair.split(":");
    expect([word, stemOf(word)]).toEqual([word, stem]);
  }
  expect(stemOf("größen")).toBe("größen");
  expect(stemOf("v2s")).toBe("v2s");
});

test("[FS-2] a text is letters and digits in lower case; stop words say nothing; endless words and texts are cut", () => {
  expect(wordsOf('The "Über-Test" of my_function(x1)!')).toEqual(["the", "über", "test", "of", "my", "function", "x1"]);
  expect(stemsOf("The tests are running, don't worry")).toEqual(["test", "run", "worri"]);
  expect(stemsOf("!?* ()")).toEqual([]);
  expect(wordsOf("a".repeat(5_000))[0]?.length).toBe(128);
  expect(stemsOf("word ".repeat(50_000)).length).toBe(10_000);
});
