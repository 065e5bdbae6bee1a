/** The token that a text on the command line names. */
import { expect, test } from "vitest";
import { findToken } from "../../../agent/management/find-token.ts";
import type { ManagementApi } from "../../../agent/management/management-api.ts";
import type { Token } from "../../../protocol/schemas/tokens.ts";

const NONCE = "0123456789abcdef0123456789abcdef";

function createToken(name: string, nonce: string): Token {
  return { name, nonce, revoked: false, expiresAt: Date.now() / 1000 + 60 } as Token;
}

/** The API of an account that has these tokens. */
function createApi(tokens: Token[]): ManagementApi {
  // oxlint-disable-next-line require-await
  const listTokens = async function* () {
    yield tokens;
  };
  return { listTokens } as Partial<ManagementApi> as ManagementApi;
}

test("a complete nonce names its token, however many other tokens have it as their name", async () => {
  const others = Array.from({ length: 9 }, (_, at) => createToken(NONCE, `${at}`.repeat(32)));
  const api = createApi([...others, createToken("laptop", NONCE)]);
  expect(await findToken(api, NONCE)).toMatchObject({ name: "laptop" });
});
