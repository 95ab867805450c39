// Finds regular expressions whose time grows faster than their text: scslre finds patterns that one repeated character slows down, and
// `restartsInItself` finds patterns that a repeated text slows down, such as `https?:\/\/[^?]+\?` with "http://http://http://…".
import { type AnalysisResult, analyse } from "scslre";
import typescript from "typescript-5";

type Pattern = AnalysisResult["parsed"]["pattern"];
type Element = Pattern["alternatives"][number]["elements"][number];

export type FoundPattern = { readonly line: number; readonly source: string; readonly flags: string };

/** Returns all literals of regular expressions of a file. */
export const listPatterns = (file: string, text: string): FoundPattern[] => {
  const source = typescript.createSourceFile(file, text, typescript.ScriptTarget.Latest);
  const found: FoundPattern[] = [];
  const visit = (node: typescript.Node): void => {
    typescript.forEachChild(node, visit);
    if (!typescript.isRegularExpressionLiteral(node)) return;
    const end = node.text.lastIndexOf("/");
    const { line } = source.getLineAndCharacterOfPosition(node.getStart(source));
    found.push({ line: line + 1, source: node.text.slice(1, end), flags: node.text.slice(end + 1) });
  };
  visit(source);
  return found;
};

/** Returns whether some text makes the pattern take quadratic time or more. */
export const isSlow = ({ source, flags }: Pick<FoundPattern, "source" | "flags">): boolean => {
  const { reports, parsed } = analyse({ source, flags }, { assumeRejectingSuffix: false });
  const slow = reports.filter((report) => report.type !== "Trade" || !takesAnything(report.endQuant.element, flags));
  return slow.length > 0 || (!flags.includes("y") && restartsInItself(parsed.pattern, flags));
};

/**
 * Returns whether the text that one quantifier matches can contain the beginning of the pattern again, and the match can fail after it. Then
 * the engine reads the rest of the text once for each such beginning.
 */
const restartsInItself = ({ alternatives }: Pattern, flags: string): boolean =>
  alternatives.some(({ elements }) => {
    const parts = elements.flatMap(flatten);
    if (isStart(parts[0], flags)) return false;
    return parts.some((part, i) => {
      if (part.type !== "Quantifier" || part.max !== Infinity || !isOneCharacter(part.element)) return false;
      const beginning = parts
        .slice(0, i)
        .map((one) => sample(one, flags))
        .join("");
      const rest = parts.slice(i + 1);
      return (
        beginning !== "" &&
        includesAll(part.element, beginning, flags) &&
        !isEndReached(part.element, rest, flags) &&
        rest.some(canFail)
      );
    });
  });

/** Groups with one alternative count as their parts. */
const flatten = (element: Element): Element[] =>
  isGroup(element) && element.alternatives.length === 1
    ? (element.alternatives[0]?.elements ?? []).flatMap(flatten)
    : [element];

const isGroup = (element: Element): element is Extract<Element, { type: "Group" | "CapturingGroup" }> =>
  element.type === "Group" || element.type === "CapturingGroup";

const isStart = (element: Element | undefined, flags: string): boolean =>
  element?.type === "Assertion" && element.kind === "start" && !flags.includes("m");

const isOneCharacter = ({ type }: Element): boolean =>
  type === "Character" || type === "CharacterClass" || type === "CharacterSet";

/** A quantifier over any character cannot fail, so the engine never goes back before it. */
const takesAnything = ({ raw }: Element, flags: string): boolean =>
  raw === "[\\s\\S]" || raw === "[^]" || (raw === "." && flags.includes("s"));

/** Returns whether `.*` is followed only by an end that it always reaches. */
const isEndReached = ({ raw }: Element, [next]: readonly Element[], flags: string): boolean =>
  raw === "." && next?.type === "Assertion" && next.kind === "end" && /[ms]/.test(flags);

const canFail = (element: Element): boolean => element.type !== "Quantifier" || element.min > 0;

const includesAll = ({ raw }: Element, text: string, flags: string): boolean =>
  new RegExp(`^(?:${raw})+$`, flags.replace(/[gy]/g, "")).test(text);

const SAMPLES = [..."aA0 \t\n-_./:=\"'([{<#@*`\\,;&?%$|!+~é"];

/** Returns a short text that the element matches. Looks only at the first alternative of each group. */
const sample = (element: Element, flags: string): string => {
  if (element.type === "Character") return String.fromCodePoint(element.value);
  if (element.type === "Assertion" && element.kind === "start" && flags.includes("m")) return "\n";
  if (isOneCharacter(element)) return SAMPLES.find((character) => includesAll(element, character, "u")) ?? "";
  if (isGroup(element)) return (element.alternatives[0]?.elements ?? []).map((one) => sample(one, flags)).join("");
  return element.type === "Quantifier" ? sample(element.element, flags).repeat(Math.min(element.min, 4)) : "";
};
