/** JSON Web Tokens (RFC 7519) in texts. They are decoded, not verified: the page has no keys. */
import { fromBase64 } from "../../../../shared/bytes.ts";
import { isContainer, parseJson, type JsonContainer, type JsonValue } from "./json.ts";

const TOKEN_MAX_CHARS = 16 * 1024;
const TOKENS_MAX = 10;
/** Its header is a JSON object, whose base64url begins with these characters. */
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

/** @param text such as the value of a header. */
export function findTokens(text: string): JsonWebToken[] {
  const found = text.slice(0, TOKEN_MAX_CHARS).match(TOKEN) ?? [];
  return found
    .slice(0, TOKENS_MAX)
    .map((token) => parseToken(token))
    .filter((token) => token !== null);
}

/** @returns null when it is not a token. */
function parseToken(text: string): JsonWebToken | null {
  if (text.length > TOKEN_MAX_CHARS) return null;
  const [head = "", body = "", , ...rest] = text.split(".");
  if (rest.length > 0 || !text.includes(".")) return null;
  const [header, claims] = [readObject(head), readObject(body)];
  if (header === null || claims === null) return null;
  const isTokenHeader = header.entries.some(({ key }) => key === "alg" || key === "typ");
  return isTokenHeader ? { header, claims, times: readTimes(claims) } : null;
}

function readObject(base64: string): JsonContainer | null {
  const bytes = fromBase64(base64);
  if (bytes === null || bytes.length === 0) return null;
  const result = parseJson(new TextDecoder().decode(bytes));
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
