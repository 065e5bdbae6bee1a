/** The messages that a program can send, collected from its source: those of its errors, as templates. */
import { readFileSync } from "node:fs";
import ts from "typescript";

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
    const source = ts.createSourceFile(
      file,
      readFileSync(file, "utf8"),
      ts.ScriptTarget.Latest,
      true,
    );
    const messages: SourceMessage[] = [];
    const visit = (node: ts.Node): void => {
      if (isCallTo(node, callee)) {
        const [subject, message] = node.arguments ?? [];
        const line = source.getLineAndCharacterOfPosition(node.getStart()).line + 1;
        for (const text of message ? toTexts(message) : []) {
          messages.push({ place: `${file}:${line}`, subject: toLiteral(subject), text });
        }
      }
      ts.forEachChild(node, visit);
    };
    visit(source);
    return messages;
  });
}

function isCallTo(node: ts.Node, callee: string): node is ts.CallExpression | ts.NewExpression {
  return (
    (ts.isCallExpression(node) || ts.isNewExpression(node)) &&
    ts.isIdentifier(node.expression) &&
    node.expression.text === callee
  );
}

function toLiteral(node: ts.Expression | undefined): string | null {
  return node && ts.isStringLiteralLike(node) ? node.text : null;
}

/** Each alternative of a conditional expression, and the values of a constant in scope. */
function toTexts(node: ts.Expression): string[] {
  if (ts.isStringLiteralLike(node)) return [node.text];
  if (ts.isTemplateExpression(node)) {
    return [node.head.text + node.templateSpans.map(({ literal }) => `…${literal.text}`).join("")];
  }
  if (ts.isConditionalExpression(node)) {
    return [...toTexts(node.whenTrue), ...toTexts(node.whenFalse)];
  }
  if (ts.isBinaryExpression(node)) {
    return toTexts(node.left).flatMap((left) => toTexts(node.right).map((right) => left + right));
  }
  return ts.isIdentifier(node) ? findConstant(node) : [];
}

function findConstant(name: ts.Identifier): string[] {
  for (let scope: ts.Node = name; !ts.isSourceFile(scope); scope = scope.parent) {
    if (
      !ts.isBlock(scope.parent) &&
      !ts.isCaseClause(scope.parent) &&
      !ts.isSourceFile(scope.parent)
    ) {
      continue;
    }
    const declarations = scope.parent.statements
      .filter((statement) => ts.isVariableStatement(statement))
      .flatMap((statement) => [...statement.declarationList.declarations]);
    const found = declarations.find(
      (one) => ts.isIdentifier(one.name) && one.name.text === name.text,
    );
    if (found) return found.initializer ? toTexts(found.initializer) : [];
  }
  return [];
}
