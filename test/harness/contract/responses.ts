/** Compares the responses of test servers with the API's document. */
import type { OpenApiDocument } from "../../../workers/api/reference/openapi.ts";
import { Contract, type Exchange } from "./contract.ts";

/** All servers of a test run have the same document, except for their own address. */
let loading: Promise<Contract> | undefined;

/** @param origin of the server that answered. @throws Error for a response that the document does not allow. */
export async function requireContract(origin: string, exchange: Exchange): Promise<void> {
  loading ??= loadContract(origin);
  const contract = await loading.catch((error: unknown) => {
    loading = undefined;
    throw error;
  });
  const violations = contract.findViolations(exchange);
  if (violations.length === 0) return;
  const { method, path, status, body } = exchange;
  const text = JSON.stringify(body)?.slice(0, 1_000) ?? "";
  throw new Error(
    `${method} ${path.slice(0, 500)} → ${status} violates /openapi.json: ${violations.join("; ")}\n${text}`,
  );
}

async function loadContract(origin: string): Promise<Contract> {
  const response = await fetch(`${origin}/openapi.json`);
  return new Contract(JSON.parse(await response.text()) as OpenApiDocument);
}
