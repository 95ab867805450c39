// Decides whether a part of a shell text makes the shell itself do more than read: set variables such as PATH, define functions, or evaluate
// text as arithmetic. Bash runs substitutions in arithmetic even if the text is in quotes or in a variable: `[[ 'a[$(x)]' -eq 0 ]]`. Pure.
import type { ParameterExpansionPart, SyntaxNode, TestExpression } from "unbash";

const CALCULATES = 'the shell may run text that it calculates with (use "[" instead of "[[")';
const SETS_VARIABLES = "it sets variables";

/** What the shell does in each of these parts besides reading. */
const PROBLEMS: Partial<Record<SyntaxNode["type"], string>> = {
  ArithmeticCommand: CALCULATES,
  ArithmeticExpansion: CALCULATES,
  ArithmeticFor: CALCULATES,
  Assignment: SETS_VARIABLES,
  Coproc: "it defines functions",
  ExtendedGlob: "some shells run code in such patterns",
  FileDescriptorVariable: SETS_VARIABLES,
  Function: "it defines functions",
  Select: SETS_VARIABLES,
};

/** Operators of `[[ ]]` that take text, or the name of a file. Others take names of variables or numbers, and calculate. */
const TEXT_OPERATOR = /^(?:-(?:[abcdefghknprsuwxzGLNOS]|nt|ot|ef)|==?|!=|=~)$/;
/** Subscripts, and what ends a command in shells that have no `[[ ]]`: there, `[[ a || rm == b ]]` runs `rm`. */
const BEYOND_WORDS = /[\n|&;<>[]|[^$]\(/;

/** Variables of loops that no shell and no program gives a meaning: zsh takes programs from `path`, too. */
const PLAIN_VARIABLE = /^(?!path$)[a-z_][a-z0-9_]*$/;
const PLAIN_PARAMETER = /^(?:[A-Za-z_]\w*|\d+|[@*#?$!-])$/;

/** Returns what the shell may do; undefined if it only reads. `source`: the text to which the node's positions refer. */
export const findShellProblem = (node: SyntaxNode, source: string): string | undefined => {
  const problem = PROBLEMS[node.type];
  if (problem !== undefined) return problem;
  if (node.type === "For") return PLAIN_VARIABLE.test(node.name.text) ? undefined : SETS_VARIABLES;
  if (node.type === "ParameterExpansion") return isPlainExpansion(node) ? undefined : `"${node.text}" is not plain`;
  if (node.type === "TestCommand")
    return isPlainTest(node.expression, source.slice(node.pos + "[[".length, node.end)) ? undefined : CALCULATES;
  const isSubstitution = node.type === "CommandExpansion" || node.type === "ProcessSubstitution";
  const script = isSubstitution ? node.script : node;
  const isBroken = script === undefined || (script.type === "Script" && (script.errors?.length ?? 0) > 0);
  return isBroken ? "it is not a plain shell command" : undefined;
};

const isPlainTest = (expression: TestExpression, text: string): boolean => {
  const test = expression.type === "TestNot" ? expression.operand : expression;
  const isSingle = test.type === "TestUnary" || test.type === "TestBinary";
  return isSingle && TEXT_OPERATOR.test(test.operator) && !BEYOND_WORDS.test(text);
};

/** Not plain: subscripts and offsets, which are arithmetic, `${x@P}`, the value of another variable, and operators that set it. */
const isPlainExpansion = ({ parameter, prefix, index, operation }: ParameterExpansionPart): boolean => {
  if (!PLAIN_PARAMETER.test(parameter) || prefix === "!" || index !== undefined) return false;
  if (operation === undefined || operation.type === "Remove" || operation.type === "Replace") return true;
  return operation.type === "Default" && !operation.operator.endsWith("=");
};
