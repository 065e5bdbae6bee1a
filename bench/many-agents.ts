/** Agents by the thousand, in this process. */
import type { Stack } from "./stack.ts";

export const CONCURRENCY = 20;

/** A token for so many tunnels at once. */
export async function mintWideToken(stack: Stack, tunnelQuota: number): Promise<Buffer> {
  const answer = await fetch(`${stack.server.url}/tokens`, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      authorization: `Bearer ${stack.accessToken}`,
    },
    body: JSON.stringify({ name: "many tunnels", tunnelQuota }),
  });
  if (!answer.ok) throw new Error(`POST /tokens answered ${answer.status}: ${await answer.text()}`);
  const { wireBytes } = (await answer.json()) as { wireBytes: string };
  return Buffer.from(wireBytes, "base64");
}

export async function runConcurrently(
  count: number,
  act: (index: number) => Promise<void>,
): Promise<void> {
  let next = 0;
  await Promise.all(
    Array.from({ length: CONCURRENCY }, async () => {
      while (next < count) await act(next++);
    }),
  );
}
