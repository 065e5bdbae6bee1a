/** `${NAME}` in underpass.yml: replaced by the variable of the environment. */

/** Why a reference can't be replaced. `at` is its index in the text. */
interface ReferenceProblem {
  at: number;
  message: string;
}

/** `$$`, `${NAME}`, `${NAME:-default}`, or a `${` that is none of them. */
const REFERENCE = /\$\$|\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}|\$\{/g;

/**
 * Replaces `${NAME}` by a variable, `${NAME:-default}` by the default when the variable is not set or empty, and `$$` by `$`.
 * Any other `$` stays.
 */
export function replaceReferences(
  text: string,
  environment: Readonly<Record<string, string | undefined>>,
): { text: string; problems: ReferenceProblem[] } {
  const problems: ReferenceProblem[] = [];
  const replaced = text.replace(
    REFERENCE,
    (found: string, name: string | undefined, fallback: string | undefined, at: number) => {
      if (found === "$$") return "$";
      if (name === undefined) {
        const message = "${ must be followed by a variable's name and }; write $${ for the text ${";
        problems.push({ at, message });
        return found;
      }
      const value = environment[name];
      if (fallback !== undefined) return value === undefined || value === "" ? fallback : value;
      if (value !== undefined) return value;
      const message = `the environment variable ${name} is not set; set it, or write \${${name}:-default}`;
      problems.push({ at, message });
      return found;
    },
  );
  return { text: replaced, problems };
}
