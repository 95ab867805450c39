// Estimates how many guesses a password takes, in a Worker: loading the words takes 0.2 s and a hostile password as long, and 50 MB are
// only there while they are needed (strength.ts).
import { ZxcvbnFactory } from "@zxcvbn-ts/core";
import { dictionary as common, adjacencyGraphs as graphs } from "@zxcvbn-ts/language-common";
import { dictionary as english } from "@zxcvbn-ts/language-en";

declare const self: Worker;

// Family names and the words of an encyclopedia cost half of the start, and are found out by their length alone.
const { "lastnames-en": _names, "wikipedia-en": _words, ...words } = english;
const estimator = new ZxcvbnFactory({ dictionary: { ...common, ...words }, graphs });

self.onmessage = ({ data: { id, password } }: MessageEvent<{ id: number; password: string }>) => {
  self.postMessage({ id, guesses: estimator.check(password).guessesLog10 });
};
