/** Words of commands that a user copies into a shell. */

/** As one word in any POSIX shell, with quotes only where they are needed. */
export function quoteForShell(word: string): string {
  return /^[\w.@%+=:,/-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}
