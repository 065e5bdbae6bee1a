/** `POST /argon2`: hashes a password on a thread of its own, because workerd serves everything with a single one. */
import { argon2 } from "node:crypto";
import { promisify } from "node:util";
import { z } from "zod";
import { parseJson } from "../json.ts";
import { type GatewayResponse, buildErrorResponse } from "./response.ts";

const deriveKey = promisify(argon2);

const Derivation = z.object({
  secret: z.base64(),
  salt: z.base64(),
  memoryCost: z.int().min(8).max(65_536),
  timeCost: z.int().min(1).max(10),
  parallelism: z.int().min(1).max(4),
  hashLength: z.int().min(16).max(64),
});

/** Takes and answers bytes in base64. */
export async function handleArgon2(body: string): Promise<GatewayResponse> {
  const request = Derivation.safeParse(parseJson(body)).data;
  if (!request) return buildErrorResponse(400, "the body must be {secret, salt} and the costs");
  const hash = await deriveKey("argon2id", {
    message: Buffer.from(request.secret, "base64"),
    nonce: Buffer.from(request.salt, "base64"),
    memory: request.memoryCost,
    passes: request.timeCost,
    parallelism: request.parallelism,
    tagLength: request.hashLength,
  });
  return { status: 200, body: JSON.stringify({ hash: hash.toString("base64") }) };
}
