/** Durable Objects that answer no call, because the files of their storage are damaged. */
import { createHash, createHmac } from "node:crypto";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";

/** Before the object is called for the first time. */
export async function damageObject(
  { dataDir }: { dataDir: string },
  className: "Organization" | "Receiver" | "Tunnel",
  name: string,
): Promise<void> {
  const uniqueKey = `underpass-${className}`;
  const directory = join(dataDir, "objects", uniqueKey);
  await mkdir(directory, { recursive: true });
  await writeFile(join(directory, `${computeId(uniqueKey, name)}.sqlite`), "x".repeat(4_096));
}

/** The id that workerd computes from an object's name. */
function computeId(uniqueKey: string, name: string): string {
  const key = createHash("sha256").update(uniqueKey).digest();
  const half = (text: string | Buffer) =>
    createHmac("sha256", key).update(text).digest().subarray(0, 16);
  const first = half(name);
  return Buffer.concat([first, half(first)]).toString("hex");
}
