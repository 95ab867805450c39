// A provider's error as shown to users contains each sentence once, even if the packages repeat it.
import { expect, test } from "bun:test";
import { removeRepetitions } from "#src/llm/call-failure.ts";

test.each<[texts: string[], expected: string]>([
  [["no", '{"error":{"message":"no","type":"bad"}}'], "no (bad)"],
  [['{"message":"no","code":"content_filter"}', "content_filter"], "no (content_filter)"],
  [["Unable to connect.", "ConnectionRefused"], "Unable to connect. ConnectionRefused"],
  [["Bad Gateway", "<html>Bad Gateway"], "Bad Gateway <html>Bad Gateway"],
  [['{"error":{"message":"{\\"message\\":\\"inner\\"}"}}'], "inner"],
  [['[{"error":{"message":"from a list"}}]'], "from a list"],
  [['{"detail":"of another shape"}'], '{"detail":"of another shape"}'],
  [["{half of"], "{half of"],
  [[], ""],
])("[MO-13] %p becomes %p", (texts, expected) => expect(removeRepetitions(texts)).toBe(expected));
