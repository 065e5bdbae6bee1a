/** The messages that a program can send, collected from its source: those of its errors, as templates. */
import { readFileSync } from "node:fs";
import {
  parseSync,
  Visitor,
  type Argument,
  type CallExpression,
  type Expression,
  type NewExpression,
  type Node,
  type Statement,
} from "oxc-parser";

export interface SourceMessage extends SourceText {
  callee: string;
  /** The index of the argument. */
  position: number;
  /** The error code, or the name of the field. null when it is not a literal. */
  subject: string | null;
}

export interface SourceText {
  /** `file:line` */
  place: string;
  /** An expression inside it is written as `…`. */
  text: string;
}

/**
 * @param positions the names of constructors, functions and methods, each with the indexes of the arguments that are
 * messages. Of a later argument than the first, the first one is the subject.
 */
export function collectMessages(
  files: string[],
  positions: Readonly<Record<string, readonly number[]>>,
): SourceMessage[] {
  return files.flatMap((file) => {
    const text = readFileSync(file, "utf8");
    const messages: SourceMessage[] = [];
    const scopes: Statement[][] = [];
    const enter = ({ body }: { body: unknown }): void => void scopes.push(body as Statement[]);
    const exit = (): void => void scopes.pop();
    const visit = (node: CallExpression | NewExpression): void => {
      const callee = getCalleeName(node) ?? "";
      const line = text.slice(0, node.start).split("\n").length;
      const subject = toLiteral(node.arguments[0]);
      for (const position of Object.hasOwn(positions, callee) ? positions[callee]! : []) {
        const message = node.arguments[position];
        for (const found of message ? toTexts(message, scopes) : []) {
          messages.push({ callee, position, place: `${file}:${line}`, subject, text: found });
        }
      }
    };
    new Visitor({
      Program: enter,
      "Program:exit": exit,
      BlockStatement: enter,
      "BlockStatement:exit": exit,
      SwitchCase: ({ consequent }) => void scopes.push(consequent),
      "SwitchCase:exit": exit,
      CallExpression: visit,
      NewExpression: visit,
    }).visit(parseSync(file, text).program);
    return messages;
  });
}

/** All texts of a program that have several words, such as help, headings and results. */
export function collectTexts(files: string[]): SourceText[] {
  return files.flatMap((file) => {
    const source = readFileSync(file, "utf8");
    const found: SourceText[] = [];
    const add = (node: Node, text: string): void => {
      const place = `${file}:${source.slice(0, node.start).split("\n").length}`;
      if (/[a-z,;:] [a-z]/i.test(text)) found.push({ place, text });
    };
    new Visitor({
      Literal: (node) => {
        if (typeof node.value === "string") add(node, node.value);
      },
      TemplateLiteral: (node) => add(node, node.quasis.map(({ value }) => value.cooked).join("…")),
      JSXText: (node) => add(node, node.value.replaceAll(/\s+/g, " ").trim()),
    }).visit(parseSync(file, source).program);
    return found;
  });
}

/** The lines of the texts in which `findProblem` finds one. */
export function findTextProblems(
  texts: SourceText[],
  findProblem: (text: string) => string | null,
): string[] {
  return texts.flatMap(({ place, text }) => {
    const problem = findProblem(text);
    return problem === null ? [] : [`${place} ${problem}: ${text}`];
  });
}

/** `fail` in `fail("…")`, `this.#fail("…")` and `output.fail("…")`. */
function getCalleeName({ callee }: CallExpression | NewExpression): string | undefined {
  if (callee.type === "Identifier") return callee.name;
  if (callee.type !== "MemberExpression") return undefined;
  const { property } = callee;
  const isName = property.type === "Identifier" || property.type === "PrivateIdentifier";
  return isName ? property.name : undefined;
}

function toLiteral(node: Node | undefined): string | null {
  if (node?.type === "Literal" && typeof node.value === "string") return node.value;
  if (node?.type === "TemplateLiteral" && node.expressions.length === 0) {
    return node.quasis[0]!.value.cooked;
  }
  return null;
}

/**
 * Each alternative of a conditional expression, and the values of a constant in scope.
 *
 * @param scopes the statements of each block around the expression, the innermost last.
 */
function toTexts(node: Argument | Expression, scopes: Statement[][]): string[] {
  const literal = toLiteral(node);
  if (literal !== null) return [literal];
  switch (node.type) {
    case "TemplateLiteral":
      return [node.quasis.map(({ value }) => value.cooked).join("…")];
    case "ConditionalExpression":
      return [...toTexts(node.consequent, scopes), ...toTexts(node.alternate, scopes)];
    case "BinaryExpression":
      return toTexts(node.left as Expression, scopes).flatMap((left) =>
        toTexts(node.right, scopes).map((right) => left + right),
      );
    case "Identifier":
      return findConstant(node.name, scopes);
    default:
      return [];
  }
}

function findConstant(name: string, scopes: Statement[][]): string[] {
  for (const statements of scopes.toReversed()) {
    const found = statements
      .flatMap((one) => (one.type === "VariableDeclaration" ? one.declarations : []))
      .find(({ id }) => id.type === "Identifier" && id.name === name);
    if (found) return found.init ? toTexts(found.init, scopes) : [];
  }
  return [];
}
