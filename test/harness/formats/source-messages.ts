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

export interface SourceMessage {
  /** `file:line` */
  place: string;
  /** The error code, or the name of the field. null when it is not a literal. */
  subject: string | null;
  /** An expression inside it is written as `…`. */
  text: string;
}

/** @param callee a constructor or a function whose first argument is the subject and the second one the message. */
export function collectMessages(files: string[], callee: string): SourceMessage[] {
  return files.flatMap((file) => {
    const text = readFileSync(file, "utf8");
    const messages: SourceMessage[] = [];
    const scopes: Statement[][] = [];
    const enter = ({ body }: { body: unknown }): void => void scopes.push(body as Statement[]);
    const exit = (): void => void scopes.pop();
    const visit = (node: CallExpression | NewExpression): void => {
      if (node.callee.type !== "Identifier" || node.callee.name !== callee) return;
      const [subject, message] = node.arguments;
      const line = text.slice(0, node.start).split("\n").length;
      for (const found of message ? toTexts(message, scopes) : []) {
        messages.push({ place: `${file}:${line}`, subject: toLiteral(subject), text: found });
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
