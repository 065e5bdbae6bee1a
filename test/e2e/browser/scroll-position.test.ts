/** Where a long page is scrolled to after Back and after a reload, in a real browser. */
import { test } from "vitest";
import { startApi, waitUntil } from "../../harness/server/api.ts";
import { usePages, waitForContent } from "../../harness/browser/pages.ts";

const pages = usePages(() => startApi());
const POSITION = 5_000;

test("Back and a reload show a list where it was scrolled to", async () => {
  const owner = await pages.api.owner();
  await pages.api.sql(
    "insert into projects (org_id, slug, name) select $1, 'p' || n, 'Project ' || n from generate_series(1, 200) n",
    [owner.orgId],
  );
  const page = await pages.openAs(owner.email, "/projects");
  const isAt = async (top: number) => (await page.evaluate<number>("scrollY")) === top;
  await page.evaluate(`scrollTo(0, ${POSITION})`);
  await waitUntil(() => isAt(POSITION));
  await page.getByRole("link", { name: "Tokens", exact: true }).click();
  await page.getByRole("heading", { name: "Tokens", level: 1 }).waitFor();
  await waitUntil(() => isAt(0));
  await page.goBack();
  await waitUntil(() => isAt(POSITION));
  // The list arrives some time after the page.
  await page.reload();
  await waitForContent(page);
  await waitUntil(() => isAt(POSITION));
});
