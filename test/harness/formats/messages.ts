/** Rules for the messages that a caller of the API reads. */
import { appendFileSync } from "node:fs";
import { ErrorBody } from "../../../protocol/schemas/error-body.ts";

/** Messages of zod, Hono and the JSON parser. */
const LIBRARY_PHRASE =
  /Invalid input|\bexpected\b|, received|\bNaN\b|Too (small|big)|Invalid option|Unrecognized key|Malformed|Unexpected token|undefined|\[object/i;
const UNCLEAR_PHRASE =
  /whoever|somebody|nobody|anybody|everybody|\btold\b|\bhear[ds]?\b|\bkept\b|\bis over\b|\bfor good\b|no longer good|\bno such\b|\bis there\b|\banew\b|once more|by then|\bfault\b|e-mail|second factor/i;

/** A message is one sentence or several. */
export function findSentenceProblem(text: string): string | null {
  if (!/^[A-Z…][^\n]*\.$/.test(text)) return "is not a sentence";
  return findPhraseProblem(text);
}

/** A fragment continues the name of a field or of a close code. */
export function findFragmentProblem(text: string): string | null {
  if (!/^[a-z…][^\n]*[^.]$/.test(text)) return "is not a fragment in lower case without a period";
  return findPhraseProblem(text);
}

/** @returns why a text is not in plain language of this service. */
export function findPhraseProblem(text: string): string | null {
  if (LIBRARY_PHRASE.test(text)) return "is a library's message";
  return UNCLEAR_PHRASE.test(text) ? "is not clear" : null;
}

/** @returns why the body of an error response can't be understood. */
export function findErrorProblems(body: unknown, messages: MessageCollection): string[] {
  const parsed = ErrorBody.safeParse(body);
  if (!parsed.success) return ["is no error body"];
  const { error, message, fields = [] } = parsed.data;
  messages.add("error", `${error}: ${message}`);
  for (const field of fields) messages.add("field", `${field.path}: ${field.message}`);
  return [
    { text: message, problem: findSentenceProblem(message) },
    ...fields.map((field) => ({
      text: field.message,
      problem: findFragmentProblem(field.message),
    })),
  ].flatMap(({ text, problem }) => (problem === null ? [] : [`${problem}: ${text}`]));
}

/** All messages that a test has seen, by kind. */
export class MessageCollection {
  readonly #byKind = new Map<string, Set<string>>();

  add(kind: "error" | "field" | "refusal", text: string): void {
    const texts = this.#byKind.get(kind) ?? new Set();
    this.#byKind.set(kind, texts.add(text));
  }

  /** Appends them to the file that the variable MESSAGES_FILE names, for people who want to read all of them. */
  write(): void {
    const path = process.env["MESSAGES_FILE"];
    if (path === undefined) return;
    for (const [kind, texts] of this.#byKind)
      appendFileSync(path, `# ${kind}\n\n${[...texts].sort().join("\n")}\n\n`);
  }
}
