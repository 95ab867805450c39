// Estimates password strength in a Worker: loading the dictionaries takes 0.2 s and a hostile password as long, and their 50 MB are only
// needed temporarily (strength.ts).
import { ZxcvbnFactory } from "@zxcvbn-ts/core";
import { dictionary as common, adjacencyGraphs as graphs } from "@zxcvbn-ts/language-common";
import { dictionary as english } from "@zxcvbn-ts/language-en";

declare const self: Worker;

// Family names and the encyclopedia's words take half of the loading time, and passwords made of them fail on length alone.
const { "lastnames-en": _names, "wikipedia-en": _words, ...words } = english;
const estimator = new ZxcvbnFactory({ dictionary: { ...common, ...words }, graphs });

self.onmessage = ({ data: { id, password } }: MessageEvent<{ id: number; password: string }>) => {
  self.postMessage({ id, guesses: estimator.check(password).guessesLog10 });
};
