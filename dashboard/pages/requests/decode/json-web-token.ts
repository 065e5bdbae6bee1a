/** JSON Web Tokens (RFC 7519) in texts. They are decoded, not verified: the page has no keys. */
import { fromBase64 } from "../../../../shared/bytes.ts";
import { isContainer, parseJsonTree, type JsonContainer, type JsonValue } from "./json/json.ts";

/** Only the beginning of a longer text is searched. */
const SEARCHED_MAX_CHARS = 16 * 1024;
const TOKENS_MAX = 10;
/** Three parts. The first one is a JSON object in base64url: its bytes `{"` begin with `ey`. */
const TOKEN = /(?<![\w-])ey[IJ][\w-]+\.[\w-]+\.[\w-]*(?![\w-])/g;

export interface JsonWebToken {
  header: JsonContainer;
  claims: JsonContainer;
  times: TokenTime[];
}

/** A claim that is a point in time. */
export interface TokenTime {
  claim: "iat" | "nbf" | "exp";
  /** RFC 3339. */
  timestamp: string;
}

/** The tokens in a text, such as the value of a header; at most `TOKENS_MAX`. */
export function findJsonWebTokens(text: string): JsonWebToken[] {
  const found = text.slice(0, SEARCHED_MAX_CHARS).match(TOKEN) ?? [];
  return found
    .slice(0, TOKENS_MAX)
    .map((token) => parseToken(token))
    .filter((token) => token !== null);
}

/** @param text that `TOKEN` matches. @returns null when its header or its claims are not those of a token. */
function parseToken(text: string): JsonWebToken | null {
  const [head = "", body = ""] = text.split(".");
  const [header, claims] = [readObject(head), readObject(body)];
  if (header === null || claims === null) return null;
  const isTokenHeader = header.entries.some(({ key }) => key === "alg" || key === "typ");
  return isTokenHeader ? { header, claims, times: readTimes(claims) } : null;
}

function readObject(base64: string): JsonContainer | null {
  const bytes = fromBase64(base64);
  if (bytes === null || bytes.length === 0) return null;
  const result = parseJsonTree(new TextDecoder().decode(bytes));
  if (!("value" in result)) return null;
  const { value } = result;
  return isContainer(value) && value.kind === "object" ? value : null;
}

const TIME_CLAIMS = ["iat", "nbf", "exp"] as const;

function readTimes({ entries }: JsonContainer): TokenTime[] {
  return TIME_CLAIMS.flatMap((claim) => {
    const value: JsonValue | undefined = entries.find(({ key }) => key === claim)?.value;
    if (value?.kind !== "number") return [];
    const date = new Date(Number(value.text) * 1000);
    return Number.isNaN(date.getTime()) ? [] : [{ claim, timestamp: date.toISOString() }];
  });
}
