import { readdirSync, readFileSync } from "node:fs";
import { afterEach, expect, test } from "vitest";
import { Argon2 } from "../../../self-host/gateway/argon2.ts";

const argon2 = new Argon2();
afterEach(() => argon2.close());

const REQUEST = {
  secret: "c2VjcmV0",
  salt: Buffer.alloc(16).toString("base64"),
  memoryCost: 64,
  timeCost: 1,
  parallelism: 1,
  hashLength: 32,
};

test("requests that wait at the same time get their own hashes", async () => {
  const secrets = ["YQ==", "Yg==", "Yw=="];
  const hash = (secret: string) => argon2.handle(JSON.stringify({ ...REQUEST, secret }));
  const together = await Promise.all(secrets.map(hash));
  const alone = [];
  for (const secret of secrets) alone.push(await hash(secret));
  expect(together).toEqual(alone);
  expect(new Set(together.map(({ body }) => body)).size).toBe(3);
});

test.runIf(process.platform === "linux")(
  "visitors go first: only this thread has a lower priority",
  async () => {
    const listPriorities = () =>
      readdirSync("/proc/self/task").map((thread) => {
        const stat = readFileSync(`/proc/self/task/${thread}/stat`, "latin1");
        return Number(stat.split(") ")[1]!.split(" ")[16]);
      });
    const before = listPriorities();
    await argon2.handle(JSON.stringify(REQUEST));
    const lowered = listPriorities().filter((priority) => priority === 10);
    expect(lowered).toHaveLength(before.filter((priority) => priority === 10).length + 1);
  },
);

test("when the thread ends, the requests that wait for it fail, and the next one gets another thread", async () => {
  const waiting = argon2.handle(JSON.stringify(REQUEST));
  await argon2.close();
  await expect(waiting).rejects.toThrow("the thread has ended");
  expect(await argon2.handle(JSON.stringify(REQUEST))).toMatchObject({ status: 200 });
});
