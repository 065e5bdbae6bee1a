/** Finds the part of a JSON document that an error of the API is about. */
import { syntaxTree } from "@codemirror/language";
import type { EditorState } from "@codemirror/state";

type Node = NonNullable<ReturnType<ReturnType<typeof syntaxTree>["topNode"]["getChild"]>>;

interface TextRange {
  from: number;
  to: number;
}

/**
 * @param path as in `actions[2].path_prefix`.
 * @returns the value at the path, or the innermost one around it if a part of the path is missing.
 */
export function findJsonPath(state: EditorState, path: string): TextRange {
  let node: Node | null = syntaxTree(state).topNode.firstChild;
  if (!node) return { from: 0, to: 0 };
  for (const part of path.match(/[^.[\]]+/g) ?? []) {
    const child = findChild(state, node, part);
    if (!child) break;
    node = child;
  }
  const { from, to } = node;
  // Only the first line of a large value is marked.
  return { from, to: Math.min(to, state.doc.lineAt(from).to) };
}

function findChild(state: EditorState, node: Node, part: string): Node | null {
  if (node.name === "Array") return listValues(node)[Number(part)] ?? null;
  for (const property of node.getChildren("Property")) {
    const name = property.getChild("PropertyName");
    if (name && state.sliceDoc(name.from, name.to) === JSON.stringify(part)) {
      return property.lastChild;
    }
  }
  return null;
}

/** Without brackets and commas. */
function listValues(array: Node): Node[] {
  const values: Node[] = [];
  for (let child = array.firstChild; child; child = child.nextSibling) {
    if (/^[A-Z]/.test(child.name)) values.push(child);
  }
  return values;
}
