import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { CLOSE } from "../../../protocol/wire/close-codes.ts";
import type { ReservedSubdomain } from "../../../protocol/schemas/domains/reserved-subdomains.ts";
import type { Tunnel } from "../../../protocol/schemas/tunnels/tunnels.ts";
import {
  mintToken,
  startApi,
  waitForBlockedStatement,
  type Person,
  type TestApi,
} from "../../harness/server/api.ts";

let api: TestApi;
let owner: Person;
let other: Person;
beforeAll(async () => {
  api = await startApi();
  [owner, other] = [await api.owner(), await api.owner()];
});
afterAll(() => api.stop());

let names = 0;
const newName = () => `reserved-${(names += 1)}`;

const reserve = (subdomain: string, by = owner) =>
  by.post<ReservedSubdomain>("/reserved-subdomains", { subdomain });
const createTunnel = (subdomain: string, by = owner) =>
  by.post<Tunnel>("/tunnels", { localPort: 1, subdomain });
const list = async (by = owner) =>
  (await by.get<ReservedSubdomain[]>("/reserved-subdomains")).body.map(
    ({ subdomain }) => subdomain,
  );
const isDuplicate = { status: 409, body: { error: "duplicate_name" } };

async function createOwnerOnPlan(plan: string): Promise<Person> {
  const person = await api.owner();
  await api.sql("update organizations set plan = $2 where id = $1", [person.orgId, plan]);
  return person;
}

describe("reserving", () => {
  test("reserves a name, which only the organization sees", async () => {
    const subdomain = newName();
    const { status, body } = await reserve(subdomain);
    expect(status).toBe(201);
    expect(body).toEqual({
      id: expect.any(String),
      subdomain,
      organization_id: owner.orgId,
      created_at: expect.stringMatching(/Z$/),
    });
    expect((await owner.get("/reserved-subdomains")).body).toContainEqual(body);
    expect(await list(other)).not.toContain(subdomain);
  });

  test.each(["Name", "-name", "name-", "na.me", "", "k".repeat(64), 1])(
    "is refused for %j",
    async (subdomain) => {
      const reply = await owner.post("/reserved-subdomains", { subdomain });
      expect(reply).toMatchObject({ status: 400, body: { error: "invalid_request" } });
    },
  );

  test.each([
    ["api", "The subdomain api is reserved for the service."],
    ["www", "The subdomain www is reserved for the service."],
    [
      "l0gin",
      "The subdomain l0gin is not allowed: it looks like a name that is reserved for the service.",
    ],
    [
      "xn--name",
      'The subdomain xn--name is not allowed: "--" after two characters marks encoded names.',
    ],
  ])("is refused for %s with the reason, which is not that it is taken", async (name, message) => {
    const refusal = { status: 409, body: { error: "duplicate_name", message } };
    expect(await reserve(name)).toMatchObject(refusal);
    expect(await owner.post("/tunnels", { localPort: 1, subdomain: name })).toMatchObject(refusal);
  });

  test("is refused for a name that another organization has reserved or uses", async () => {
    const [reserved, served] = [newName(), newName()];
    await reserve(reserved, other);
    await createTunnel(served, other);
    for (const name of [reserved, served]) {
      expect(await reserve(name)).toMatchObject({
        status: 409,
        body: { error: "duplicate_name", message: `The subdomain ${name} is taken.` },
      });
    }
    expect(await list()).not.toContain(served);
  });

  test("is refused for a name that the organization has reserved, not for one that it uses", async () => {
    const subdomain = newName();
    await createTunnel(subdomain);
    expect((await reserve(subdomain)).status).toBe(201);
    expect(await reserve(subdomain)).toMatchObject({
      status: 409,
      body: {
        error: "duplicate_name",
        message: `Your organization has already reserved ${subdomain}.`,
      },
    });
  });

  test("assigns a name to exactly one of twenty concurrent requests", async () => {
    const subdomain = newName();
    const replies = await Promise.all(
      Array.from({ length: 20 }, (_, n) => reserve(subdomain, n % 2 === 0 ? owner : other)),
    );
    expect(replies.filter(({ status }) => status === 201)).toHaveLength(1);
    expect(replies.filter(({ status }) => status === 409)).toHaveLength(19);
  });

  test("and creating a tunnel in another organization at once: one of them gets the name", async () => {
    for (let round = 0; round < 10; round++) {
      const subdomain = newName();
      const replies = await Promise.all(
        Array.from({ length: 20 }, (_, n) =>
          n % 2 === 0 ? reserve(subdomain) : createTunnel(subdomain, other),
        ),
      );
      expect(replies.filter(({ status }) => status === 201)).toHaveLength(1);
      expect(replies.filter(({ status }) => status === 409)).toHaveLength(19);
    }
  });

  test("and creating a tunnel in the same organization at once: both get the name", async () => {
    for (let round = 0; round < 10; round++) {
      const subdomain = newName();
      const replies = await Promise.all([reserve(subdomain), createTunnel(subdomain)]);
      expect(replies.map(({ status }) => status)).toEqual([201, 201]);
    }
  });
});

describe("a plan", () => {
  test.each([
    ["free", 0],
    ["pro", 5],
  ])("%s includes %i, also with twenty concurrent requests", async (plan, count) => {
    const person = await createOwnerOnPlan(plan);
    const replies = await Promise.all(Array.from({ length: 20 }, () => reserve(newName(), person)));
    expect(replies.filter(({ status }) => status === 201)).toHaveLength(count);
    expect(replies.find(({ status }) => status !== 201)).toMatchObject({
      status: 402,
      body: { error: "upgrade_required" },
    });
    expect(await list(person)).toHaveLength(count);
  });

  test.each(["team", "enterprise"])("%s includes more", async (plan) => {
    const person = await createOwnerOnPlan(plan);
    for (let n = 0; n < 6; n++) expect((await reserve(newName(), person)).status).toBe(201);
  });

  test("includes another one after a release, and retains those of a higher plan", async () => {
    const person = await createOwnerOnPlan("pro");
    for (let n = 0; n < 5; n++) await reserve(newName(), person);
    const { body } = await person.get<ReservedSubdomain[]>("/reserved-subdomains");
    await person.delete(`/reserved-subdomains/${body[0]!.id}`);
    expect((await reserve(newName(), person)).status).toBe(201);
    await api.sql("update organizations set plan = 'free' where id = $1", [person.orgId]);
    const reserved = await list(person);
    expect(reserved).toHaveLength(5);
    expect((await reserve(newName(), person)).status).toBe(402);
    expect(await reserve(reserved[0]!, person)).toMatchObject(isDuplicate);
  });
});

describe("a reserved name", () => {
  test("can only be used by tunnels of the organization, through the API and by agents", async () => {
    const subdomain = newName();
    await reserve(subdomain);
    expect(await createTunnel(subdomain, other)).toMatchObject(isDuplicate);
    const foreign = await mintToken(other);
    const refused = await api.connectAgent(foreign.wireBytes, { port: 1, subdomain });
    expect(refused.code).toBe(CLOSE.duplicate_name);

    const own = await mintToken(owner);
    const agent = await api.connectAgent(own.wireBytes, { port: 1, subdomain });
    expect(agent.code).toBeUndefined();
    agent.socket?.close();
  });

  test("stays reserved when its tunnel is deleted", async () => {
    const subdomain = newName();
    await reserve(subdomain);
    const { body: tunnel } = await createTunnel(subdomain);
    await owner.delete(`/tunnels/${tunnel.id}`);
    expect(await createTunnel(subdomain, other)).toMatchObject(isDuplicate);
    expect((await createTunnel(subdomain)).status).toBe(201);
  });
});

describe("a released name", () => {
  async function releaseName(by = owner): Promise<string> {
    const subdomain = newName();
    const { body } = await reserve(subdomain, by);
    expect((await by.delete(`/reserved-subdomains/${body.id}`)).status).toBe(200);
    expect((await by.delete(`/reserved-subdomains/${body.id}`)).status).toBe(404);
    return subdomain;
  }
  const advanceClock = (subdomain: string, time: string) =>
    api.sql("update hostnames set held_until = held_until - $2::interval where host = $1", [
      subdomain,
      time,
    ]);

  test("is not available to others for a day, neither as a reservation nor as a tunnel", async () => {
    const [asTunnel, asReservation] = [await releaseName(), await releaseName()];
    for (const subdomain of [asTunnel, asReservation])
      await advanceClock(subdomain, "23 hours 59 minutes");
    expect(await createTunnel(asTunnel, other)).toMatchObject(isDuplicate);
    expect(await reserve(asReservation, other)).toMatchObject(isDuplicate);
    for (const subdomain of [asTunnel, asReservation]) await advanceClock(subdomain, "2 minutes");
    expect((await createTunnel(asTunnel, other)).status).toBe(201);
    expect((await reserve(asReservation, other)).status).toBe(201);
    expect(await reserve(asTunnel)).toMatchObject(isDuplicate);
  });

  test("is available to the same organization at once", async () => {
    const [asTunnel, asReservation] = [await releaseName(), await releaseName()];
    expect((await createTunnel(asTunnel)).status).toBe(201);
    expect((await reserve(asReservation)).status).toBe(201);
    expect(await reserve(asReservation, other)).toMatchObject(isDuplicate);
  });

  test("beyond a thousand of an organization's tunnels is available to others at once", async () => {
    const [person, held, freed] = [await api.owner(), newName(), newName()];
    const remove = async (subdomain: string) => {
      const { body } = await createTunnel(subdomain, person);
      expect((await person.delete(`/tunnels/${body.id}`)).status).toBe(200);
    };
    await api.sql(
      `insert into hostnames (host, held_by_org_id, held_until)
       select 'cooling-' || n, $1, now() + interval '1 hour' from generate_series(1, 999) n`,
      [person.orgId],
    );
    await remove(held);
    await remove(freed);
    expect(await createTunnel(held)).toMatchObject(isDuplicate);
    expect((await createTunnel(freed)).status).toBe(201);
    await api.sql("delete from hostnames where host like 'cooling-%'");
  });

  test("beyond a thousand that are released together is available to others at once", async () => {
    const person = await api.owner();
    const names = [newName(), newName()].toSorted();
    for (const name of names) expect((await createTunnel(name, person)).status).toBe(201);
    await api.sql(
      `insert into hostnames (host, held_by_org_id, held_until)
       select 'cooling-' || n, $1, now() + interval '1 hour' from generate_series(1, 999) n`,
      [person.orgId],
    );
    expect((await person.delete(`/orgs/${person.orgId}`)).status).toBe(200);
    expect(await createTunnel(names[0]!)).toMatchObject(isDuplicate);
    expect((await createTunnel(names[1]!)).status).toBe(201);
    await api.sql("delete from hostnames where host like 'cooling-%'");
  });

  test("of a deleted organization is not available to others either", async () => {
    const person = await api.owner();
    const subdomain = newName();
    const { body } = await reserve(subdomain, person);
    await person.delete(`/orgs/${person.orgId}`);
    expect(await createTunnel(subdomain)).toMatchObject(isDuplicate);
    await advanceClock(subdomain, "1 day");
    expect((await createTunnel(subdomain)).status).toBe(201);
    const events = await api.sql(
      "select action from audit_events where resource_id = $1 order by created_at",
      [body.id],
    );
    expect(events).toEqual([{ action: "subdomain_reserved" }, { action: "subdomain_released" }]);
  });
});

test("a name that is reserved while it is released causes no deadlock", async () => {
  const subdomain = newName();
  const { body } = await reserve(subdomain);
  await api.sql("begin");
  await api.sql("select 1 from hostnames where host = $1 for update", [subdomain]);
  const reserved = reserve(subdomain);
  await waitForBlockedStatement(api, 1);
  const released = owner.delete(`/reserved-subdomains/${body.id}`);
  await waitForBlockedStatement(api, 2);
  await api.sql("commit");
  expect([(await reserved).status, (await released).status]).toEqual([409, 200]);
});

test("viewers can list reserved names and not change them", async () => {
  const { body } = await reserve(newName());
  const viewer = await api.colleague(owner, "viewer");
  expect(await list(viewer)).toContain(body.subdomain);
  expect((await reserve(newName(), viewer)).status).toBe(403);
  expect((await viewer.delete(`/reserved-subdomains/${body.id}`)).status).toBe(403);
  expect((await other.delete(`/reserved-subdomains/${body.id}`)).status).toBe(404);
});
