/**
 * Compares major and minor versions: only they change what agent and server can do (below 1.0 as well).
 * @returns a negative number when `a` is older.
 */
export function compareVersions(a: string, b: string): number {
  const [majorA = 0, minorA = 0] = a.split(".").map((part) => Number.parseInt(part, 10) || 0);
  const [majorB = 0, minorB = 0] = b.split(".").map((part) => Number.parseInt(part, 10) || 0);
  return majorA - majorB || minorA - minorB;
}
